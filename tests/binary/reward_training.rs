//! `trainer rm`: one step and its effect, against TRL's RewardTrainer; micro-batches do not change it; a run resumes where it
//! was; both kinds of process reward models.

use std::path::Path;

use safetensors::SafeTensors;
use serde_json::{Map, Value, json};

use crate::common::{copy, rows, small_run, succeed, trainer};
use crate::golden_steps::{self, near};
use crate::serve_rm::Server;

fn rm(at: &Path, settings: &[String]) -> Vec<Map<String, Value>> {
    golden_steps::run("rm", at, settings)
}

#[test]
fn golden_steps_of_reward_models() {
    let folder = tempfile::tempdir().unwrap();
    for (name, golden) in golden_steps::golden_steps("rm_") {
        let rows = golden["rows"].as_array().unwrap().len();
        let mut settings = golden_steps::settings(&golden, &folder.path().join("rows.jsonl"), rows);
        let options = &golden["options"];
        settings.extend((options["margin"] == true).then(|| "data.margin_key=margin".to_owned()));
        let center = options.get("center_rewards_coefficient").filter(|center| !center.is_null());
        settings.extend(center.map(|center| format!("algorithm.center_rewards_coefficient={center}")));
        let compared = |key: &str| (key != "num_tokens").then(|| format!("train/{key}"));
        golden_steps::check("rm", &name, &golden, &settings, folder.path(), compared);
    }
}

const SMALL: &[&str] = &[
    "data.train_batch_size=8",
    "data.micro_batch_size_per_gpu=3",
    "data.train_max_samples=64",
    "data.val_max_samples=16",
    "data.max_length=64",
    "data.truncation=right",
    "trainer.save_freq=2",
    "trainer.test_freq=4",
    "optim.lr=1e-3",
    "optim.lr_scheduler_type=constant",
];

/// The settings of the forms of reward models on the arithmetic task: pairs, steps by labels, steps by tokens.
fn forms() -> [(&'static str, Vec<String>); 3] {
    let own = |settings: &[&str]| settings.iter().map(|setting| setting.to_string()).collect::<Vec<String>>();
    let steps = "data/arithmetic/steps/test.parquet";
    let by_labels =
        ["algorithm.loss_type=cross_entropy", &format!("data.train_files={steps}"), &format!("data.val_files={steps}")];
    let placeholders = [
        "algorithm.loss_type=cross_entropy",
        "data.train_files=tests/data/placeholders.jsonl",
        "data.val_files=tests/data/placeholders.jsonl",
        "data.placeholder_token=' '",
        "algorithm.reward_tokens=['+','-']",
    ];
    [("pairs", own(&[])), ("labels", own(&by_labels)), ("tokens", own(&placeholders))]
}

#[test]
fn reward_models_resume_to_the_byte_and_no_cut_changes_them() {
    let folder = tempfile::tempdir().unwrap();
    for (name, settings) in forms() {
        let run = |at: &str, steps: usize, more: &[&str]| {
            let more = SMALL.iter().chain(more).map(|setting| setting.to_string());
            let steps = [format!("trainer.total_training_steps={steps}")];
            let at = folder.path().join(format!("{name} {at}"));
            (rm(&at, &settings.iter().cloned().chain(more).chain(steps).collect::<Vec<_>>()), at)
        };
        let (whole, at) = run("whole", 4, &[]);
        assert!(whole[3].contains_key("val/accuracy") && whole[3].contains_key("val/loss"), "{name}: {:?}", whole[3]);
        assert_eq!(whole[3].contains_key("val/reward_std"), name == "pairs");
        run("resumed", 2, &[]);
        let (resumed, resumed_at) = run("resumed", 4, &[]);
        // There was a validation at the end of the first part too.
        let trained = |row: &Map<String, Value>| {
            row.clone().into_iter().filter(|(key, _)| key.starts_with("train/")).collect::<Map<String, Value>>()
        };
        assert!(whole.iter().map(trained).eq(resumed.iter().map(trained)), "{name}: {whole:?} {resumed:?}");
        assert_eq!(resumed[3], whole[3], "{name}");
        for file in ["huggingface/model.safetensors", "huggingface/config.json", "optim.safetensors"] {
            let read = |at: &Path| std::fs::read(at.join("global_step_4").join(file)).unwrap();
            assert!(read(&at) == read(&resumed_at), "{name}: {file}");
        }
        for (cut, setting) in [("1", "data.micro_batch_size_per_gpu=1"), ("tokens", "data.use_dynamic_bsz=true")] {
            let (other, _) = run(cut, 1, &[setting, "data.max_token_len_per_gpu=64"]);
            for key in ["train/loss", "train/grad_norm", "train/accuracy"] {
                near(&format!("{name}, {cut}, {key}"), other[0][key].as_f64().unwrap(), &whole[0][key], 1e-5);
            }
        }
    }
}

/// An adapter is trained with its head, resumes, and is merged by an export.
#[test]
fn adapters_of_reward_models() {
    let folder = tempfile::tempdir().unwrap();
    let settings: Vec<String> = SMALL.iter().chain(&["model.lora_rank=4"]).map(|setting| setting.to_string()).collect();
    let at = folder.path().join("run");
    let steps = |steps: usize| [&settings[..], &[format!("trainer.total_training_steps={steps}")]].concat();
    rm(&at, &steps(2));
    rm(&at, &steps(4));
    let saved = at.join("global_step_4");
    let config: Value = serde_json::from_slice(&std::fs::read(saved.join("lora_adapter/adapter_config.json")).unwrap()).unwrap();
    assert_eq!((&config["task_type"], &config["modules_to_save"]), (&json!("SEQ_CLS"), &json!(["score"])));
    let exported = folder.path().join("exported");
    succeed(trainer(&["export", saved.to_str().unwrap(), "--output", exported.to_str().unwrap()]));
    let config: Value = serde_json::from_slice(&std::fs::read(exported.join("config.json")).unwrap()).unwrap();
    let class = ("LlamaForSequenceClassification", 1, 0);
    let labels = config["id2label"].as_object().unwrap().len();
    assert_eq!((config["architectures"][0].as_str().unwrap(), labels, config["pad_token_id"].as_u64().unwrap()), class);
    let weights = std::fs::read(exported.join("model.safetensors")).unwrap();
    assert!(SafeTensors::deserialize(&weights).unwrap().names().contains(&"score.weight"));
}

/// A trained model scores at once: pairs and steps, in a run and through `trainer serve-rm`.
#[test]
fn trained_reward_models_score_responses() {
    let folder = tempfile::tempdir().unwrap();
    for (name, settings) in forms() {
        let at = folder.path().join(name);
        let more =
            SMALL.iter().chain(&["trainer.total_training_steps=2", "data.val_files=null"]).map(|setting| setting.to_string());
        rm(&at, &settings.into_iter().chain(more).collect::<Vec<_>>());
        let model = at.join("global_step_2/huggingface");
        let placeholder = ["reward_model.placeholder_token=' '", "reward_model.reward_tokens=['+','-']"];
        let placeholder = &placeholder[..if name == "tokens" { 2 } else { 0 }];
        let run = folder.path().join(format!("{name} run"));
        let path = format!("reward_model.model.path={}", model.display());
        let own = ["reward_model.enable=true", &path, "trainer.total_training_steps=1", "trainer.val_before_train=false"];
        succeed(small_run(&run, &[&own[..], placeholder].concat()));
        let score = rows(&run)[0].1["critic/score/mean"].as_f64().unwrap();
        // The score of a step is a probability.
        assert!(score.is_finite() && (name == "pairs" || 0.0 < score && score < 1.0), "{name}: {score}");

        let flags = ["--port", "0", "--placeholder-token", " ", "--reward-token", "+", "--reward-token", "-"];
        let flags = &flags[..if name == "tokens" { 8 } else { 2 }];
        let server = Server::of(model.to_str().unwrap(), flags);
        let ask = |body: Value| server.post(&body.to_string(), "").1["rewards"][0].as_f64().unwrap();
        let (whole, steps) =
            (json!({"query": ["1+2=3"], "prompts": ["1+2="]}), json!({"query": ["1+2=3\n4\n7"], "prompts": ["1+2="]}));
        // The minimum over more steps is not better.
        let (whole, steps) = (ask(whole), ask(steps));
        assert!(whole.is_finite() && (name == "pairs" || steps <= whole + 1e-5), "{name}: {whole}, {steps}");
    }
}

/// If the tokenizer pads with the token that ends texts, transformers would read scores before their end, so the saved folder
/// pads with another token. The same holds if no file states the padding token.
#[test]
fn a_pad_token_that_ends_texts_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let tokenizer = folder.path().join("tokenizer");
    copy(Path::new("data/arithmetic/model"), &tokenizer);
    let config = tokenizer.join("tokenizer_config.json");
    let text = std::fs::read_to_string(&config).unwrap().replace("\"pad_token\": \"<pad>\"", "\"pad_token\": \"<eos>\"");
    for file in [Some(text), None] {
        match &file {
            Some(text) => std::fs::write(&config, text).unwrap(),
            None => std::fs::remove_file(&config).unwrap(),
        }
        let at = folder.path().join(if file.is_some() { "another" } else { "none" });
        let more = ["trainer.total_training_steps=1", "data.val_files=null"].map(str::to_owned);
        let settings = SMALL.iter().map(|setting| setting.to_string()).chain(more);
        rm(&at, &settings.chain([format!("model.tokenizer_path={}", tokenizer.display())]).collect::<Vec<_>>());
        let saved = |file: &str| -> Value {
            serde_json::from_slice(&std::fs::read(at.join("global_step_1/huggingface").join(file)).unwrap()).unwrap()
        };
        assert_eq!(saved("config.json")["pad_token_id"], 0);
        assert_eq!(saved("tokenizer_config.json")["pad_token"], "<pad>");
    }
}
