//! `trainer rm`: one step and its effect, against TRL's RewardTrainer; no cut changes it; a run goes on where it was; both kinds of
//! process reward models.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use safetensors::SafeTensors;
use serde_json::{Map, Value, json};

use crate::common::{copy, rows, small_run, succeed, trainer};
use crate::serve_rm::Server;

fn goldens() -> PathBuf {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    std::env::var_os("BURNISH_GOLDENS").map_or(default, PathBuf::from)
}

fn rm(at: &Path, settings: &[String]) -> Vec<Map<String, Value>> {
    let mut command = trainer(&["rm", "--config", "rm_trainer.yaml"]);
    command.arg(format!("trainer.default_local_dir={}", at.display())).arg("trainer.logger=[file]").args(settings);
    succeed(command);
    rows(at).into_iter().map(|(_, metrics)| metrics).collect()
}

fn near(what: &str, ours: f64, theirs: &Value, tolerance: f64) {
    let theirs = theirs.as_f64().unwrap();
    assert!((ours - theirs).abs() <= tolerance * theirs.abs().max(1e-3), "{what}: {ours}, theirs {theirs}");
}

/// True for a tensor of which a part has no gradient but rounding noise, whose sign AdamW's first step follows: the keys' bias, and
/// where the losses of a pair cancel the last norm's.
fn without_gradient(tensor: &str) -> bool {
    ["k_proj.bias", "query_key_value.bias", "c_attn.bias", "final_layer_norm.bias", "ln_f.bias"]
        .iter()
        .any(|end| tensor.ends_with(end))
}

/// Σ |x| of every tensor of a saved model, and its number of elements.
fn abs_sums(folder: &Path) -> (Map<String, Value>, BTreeMap<String, usize>) {
    let bytes = std::fs::read(folder.join("huggingface/model.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let sum =
        |data: &[u8]| data.chunks_exact(4).map(|b| f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]])).abs()).sum::<f64>();
    let counts = tensors.iter().map(|(name, view)| (name.to_owned(), view.data().len() / 4)).collect();
    (tensors.iter().map(|(name, view)| (name.to_owned(), json!(sum(view.data())))).collect(), counts)
}

/// The settings of a step of the goldens.
fn golden_settings(golden: &Value, data: &Path) -> Vec<String> {
    let (root, rows) = (goldens(), golden["rows"].as_array().unwrap());
    let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
    std::fs::write(data, lines).unwrap();
    let trainer = &golden["trainer"];
    let [one, two] = [0, 1].map(|i| trainer["betas"][i].as_f64().unwrap());
    let mut settings = vec![
        format!("model.path={}", root.join("models").join(golden["model"].as_str().unwrap()).display()),
        format!("model.tokenizer_path={}", root.join("offline").join(golden["tokenizer"].as_str().unwrap()).display()),
        format!("data.train_files={}", data.display()),
        "data.val_files=null".to_owned(),
        "data.shuffle=false".to_owned(),
        format!("data.train_batch_size={}", rows.len()),
        format!("data.micro_batch_size_per_gpu={}", rows.len()),
        "trainer.total_training_steps=2".to_owned(),
        "trainer.save_freq=1".to_owned(),
        "optim.lr_scheduler_type=constant".to_owned(),
        "optim.lr_warmup_steps_ratio=0".to_owned(),
        format!("optim.lr={}", trainer["learning_rate"]),
        format!("optim.betas=[{one},{two}]"),
        format!("optim.eps={}", trainer["eps"]),
        format!("optim.weight_decay={}", trainer["weight_decay"]),
        format!("optim.clip_grad={}", trainer["max_grad_norm"]),
    ];
    let options = &golden["options"];
    settings.extend((options["margin"] == true).then(|| "data.margin_key=margin".to_owned()));
    let center = options.get("center_rewards_coefficient").filter(|center| !center.is_null());
    settings.extend(center.map(|center| format!("algorithm.center_rewards_coefficient={center}")));
    settings
}

#[test]
fn golden_steps_of_reward_models() {
    let folder = tempfile::tempdir().unwrap();
    let files = std::fs::read_dir(goldens().join("offline/e2e")).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let mut files: Vec<PathBuf> = files.filter(|path| name(path).starts_with("rm_")).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let golden: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let name = name(&file);
        let settings = golden_settings(&golden, &folder.path().join("rows.jsonl"));
        let check = |cut: &str, more: &[&str]| {
            let at = folder.path().join(format!("{name} {cut}"));
            let all: Vec<String> = settings.iter().cloned().chain(more.iter().map(|setting| setting.to_string())).collect();
            let steps = rm(&at, &all);
            let (name, number) = (format!("{name}, {cut}"), |step: usize, key: &str| steps[step][key].as_f64().unwrap());
            near(&format!("{name}, loss"), number(0, "train/loss"), &golden["loss"], 1e-5);
            near(&format!("{name}, gradient"), number(0, "train/grad_norm"), &golden["grad_norm"], 1e-5);
            near(&format!("{name}, loss after"), number(1, "train/loss"), &golden["loss_after_step"], 1e-4);
            for (key, want) in golden["metrics"].as_object().unwrap().iter().filter(|(key, _)| *key != "num_tokens") {
                // A mean of scores of size 1 may be near 0.
                let (ours, want) = (number(0, &format!("train/{key}")), want.as_f64().unwrap());
                assert!((ours - want).abs() <= 1e-5 * want.abs().max(0.1), "{name}, {key}: {ours}, theirs {want}");
            }
            at
        };
        let whole = check("whole", &[]);
        let (sums, counts) = abs_sums(&whole.join("global_step_1"));
        let step = golden["trainer"]["learning_rate"].as_f64().unwrap();
        for (tensor, want) in golden["param_abs_sum_after_step"].as_object().unwrap() {
            let (ours, want) = (sums[tensor].as_f64().unwrap(), want.as_f64().unwrap());
            let noise = if without_gradient(tensor) { step * counts[tensor] as f64 } else { 0.0 };
            assert!((ours - want).abs() <= 2e-4 * want + noise, "{name}, {tensor}: {ours}, theirs {want}");
        }
        for rows in ["1", "2", "4"] {
            check(rows, &[&format!("data.micro_batch_size_per_gpu={rows}")]);
        }
        check("tokens", &["data.use_dynamic_bsz=true", "data.max_length=64", "data.max_token_len_per_gpu=64"]);
        check("recomputed", &["model.enable_gradient_checkpointing=true"]);
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
        // The end of the first part was validated too.
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

/// An adapter is trained with the head beside it, resumes, and is merged by an export.
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

/// What has been trained scores at once: pairs and steps, in a run and behind `trainer serve-rm`.
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
        // The judgement of a step is a probability.
        assert!(score.is_finite() && (name == "pairs" || 0.0 < score && score < 1.0), "{name}: {score}");

        let flags = ["--port", "0", "--placeholder-token", " ", "--reward-token", "+", "--reward-token", "-"];
        let flags = &flags[..if name == "tokens" { 8 } else { 2 }];
        let server = Server::of(model.to_str().unwrap(), flags);
        let ask = |body: Value| server.post(&body.to_string(), "").1["rewards"][0].as_f64().unwrap();
        let (whole, steps) =
            (json!({"query": ["1+2=3"], "prompts": ["1+2="]}), json!({"query": ["1+2=3\n4\n7"], "prompts": ["1+2="]}));
        // The worst of more steps is no better.
        let (whole, steps) = (ask(whole), ask(steps));
        assert!(whole.is_finite() && (name == "pairs" || steps <= whole + 1e-5), "{name}: {whole}, {steps}");
    }
}

/// Where the tokenizer pads with the token that ends texts, transformers would read scores before their end: the saved folder pads with
/// another token.
#[test]
fn a_pad_token_that_ends_texts_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let tokenizer = folder.path().join("tokenizer");
    copy(Path::new("data/arithmetic/model"), &tokenizer);
    let config = tokenizer.join("tokenizer_config.json");
    let text = std::fs::read_to_string(&config).unwrap().replace("\"pad_token\": \"<pad>\"", "\"pad_token\": \"<eos>\"");
    std::fs::write(&config, text).unwrap();
    let at = folder.path().join("run");
    let more = ["trainer.total_training_steps=1", "data.val_files=null"].map(str::to_owned);
    let settings = SMALL.iter().map(|setting| setting.to_string()).chain(more);
    rm(&at, &settings.chain([format!("model.tokenizer_path={}", tokenizer.display())]).collect::<Vec<_>>());
    let saved = |file: &str| -> Value {
        serde_json::from_slice(&std::fs::read(at.join("global_step_1/huggingface").join(file)).unwrap()).unwrap()
    };
    assert_eq!(saved("config.json")["pad_token_id"], 0);
    assert_eq!(saved("tokenizer_config.json")["pad_token"], "<pad>");
}
