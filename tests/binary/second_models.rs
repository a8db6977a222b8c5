//! Every setting that names a second model, with a copy of the first whose vocabulary is smaller, larger or in another order. The
//! program refuses it by name, or uses it with its own tokenizer.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::common::{copy, of_task, trainer};
use crate::tensor_edits::TensorFile;

/// The rule for a second model with another tokenizer.
#[derive(Clone, Copy, PartialEq)]
enum Rule {
    /// An error names the setting.
    Refused,
    /// Its own tokenizer is used.
    Own,
    /// A message names the other model, which is used: its weights equal the weights of the first model.
    Named,
}

/// Command, key, the settings that make it take effect, its rule, and the name of the base folder for variants.
const SETTINGS: &[(&str, &str, &[&str], Rule, &str)] = &[
    ("", "critic.model.path", &["algorithm.adv_estimator=gae"], Rule::Refused, "model"),
    ("", "actor_rollout_ref.ref.model.path", &["actor_rollout_ref.actor.use_kl_loss=true"], Rule::Refused, "model"),
    ("", "distillation.teacher_models.teacher_model.model_path", &["distillation.enabled=true"], Rule::Refused, "model"),
    (
        "",
        "reward_model.model.path",
        &["reward_model.enable=true", "reward_model.model.input_tokenizer=null"],
        Rule::Refused,
        "reward_model",
    ),
    ("", "reward_model.model.path", &["reward_model.enable=true"], Rule::Own, "reward_model"),
    (
        "",
        "reward_model.model.input_tokenizer",
        &["reward_model.enable=true", "reward_model.model.path=data/arithmetic/reward_model"],
        Rule::Refused,
        "model",
    ),
    ("", "actor_rollout_ref.model.lora_adapter_path", &[], Rule::Refused, "adapter"),
    ("", "critic.model.lora_adapter_path", &["algorithm.adv_estimator=gae"], Rule::Refused, "adapter"),
    ("", "data.tokenizer", &[], Rule::Named, "model"),
    ("dpo", "ref.model.path", &[], Rule::Refused, "model"),
    ("dpo", "model.lora_adapter_path", &[], Rule::Refused, "adapter"),
    ("sft", "model.lora_adapter_path", &[], Rule::Refused, "adapter"),
    ("rm", "model.lora_adapter_path", &[], Rule::Refused, "adapter"),
    ("distill", "model.lora_adapter_path", &["teacher.path=data/arithmetic/model"], Rule::Refused, "adapter"),
    ("distill", "teacher.path", &[], Rule::Refused, "model"),
    ("sft", "model.tokenizer_path", &[], Rule::Named, "model"),
];

/// Settings with the suffix of model settings that name something else, or the first model itself.
const OTHERS: &[&str] = &[
    "model.path",
    "actor_rollout_ref.model.path",
    "data.path",
    "data.output_path",
    "ref.log_prob_path",
    "trainer.resume_from_path",
    "custom_reward_function.path",
    "actor_rollout_ref.actor.policy_loss.path",
    "algorithm.custom_adv_estimator.path",
    "algorithm.post_processing.path",
];

/// Every setting with the suffix of model settings, in every schema, is in one of the two lists.
#[test]
fn every_setting_that_names_a_model_is_tried() {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/settings.yaml")).unwrap();
    let keys = text.lines().filter_map(|line| line.trim_start().split_once(": ").map(|(key, _)| key));
    let names_a_model = |key: &&str| {
        let last = key.rsplit('.').next().unwrap_or(key);
        ["path", "model_path", "lora_adapter_path", "tokenizer", "tokenizer_path", "input_tokenizer"].contains(&last)
            && key.contains('.')
            && ![".multi_turn.", ".agent."].iter().any(|part| key.contains(part))
    };
    let unknown = keys.filter(names_a_model).find(|key| !OTHERS.contains(key) && !SETTINGS.iter().any(|row| row.1 == *key));
    assert_eq!(unknown, None, "add it to SETTINGS, or to OTHERS if it names no model");
}

fn root(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/arithmetic").join(name)
}

/// Changes the vocabulary of a folder: its tokenizer and, if the size changes, its weights and config.json.
fn change(folder: &Path, variant: &str) {
    let path = folder.join("tokenizer.json");
    let mut tokenizer: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let vocab = tokenizer["model"]["vocab"].as_object_mut().unwrap();
    let size = vocab.len();
    let new_size = match variant {
        "same" => size,
        "permuted" => {
            (vocab["1"], vocab["2"]) = (vocab["2"].clone(), vocab["1"].clone());
            size
        }
        "smaller" => {
            // The last token, which prompts of the task do not have, is removed.
            vocab.retain(|_, id| *id != json!(size - 1));
            size - 1
        }
        _ => {
            vocab.insert("~".into(), json!(size));
            size + 1
        }
    };
    std::fs::write(path, tokenizer.to_string()).unwrap();
    let weights = folder.join("model.safetensors");
    if new_size == size || !weights.exists() {
        return;
    }
    let mut file = TensorFile::read(&weights);
    for (name, (dtype, shape, bytes)) in &mut file.tensors {
        if name.contains("embed_tokens") || name.contains("lm_head") {
            shape[0] = new_size;
            bytes.resize(shape.iter().product::<usize>() * dtype.bitsize() / 8, 0);
        }
    }
    file.write(&weights);
    let path = folder.join("config.json");
    let mut config: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    config["vocab_size"] = json!(new_size);
    std::fs::write(path, config.to_string()).unwrap();
}

#[test]
fn a_second_model_of_other_tokens_is_refused_or_reads_its_own() {
    let folder = tempfile::tempdir().unwrap();
    // An adapter with the tokenizer in its folder, which is how users of PEFT save it.
    let run = folder.path().join("run");
    let mut sft = trainer(&["sft", "model.lora_rank=2", "trainer.total_training_steps=1", "data.train_max_samples=8"]);
    sft.args(["data.train_batch_size=4", "data.val_files=null", "trainer.logger=[file]"]);
    crate::common::succeed({
        sft.arg(format!("trainer.default_local_dir={}", run.display()));
        sft
    });
    let adapter = folder.path().join("adapter");
    copy(&run.join("global_step_1/lora_adapter"), &adapter);
    std::fs::copy(root("model").join("tokenizer.json"), adapter.join("tokenizer.json")).unwrap();
    std::fs::copy(root("model").join("tokenizer_config.json"), adapter.join("tokenizer_config.json")).unwrap();

    for (command, key, settings, rule, base) in SETTINGS {
        for variant in ["same", "permuted", "smaller", "larger"] {
            let label = format!("{command} {key}, {variant} vocabulary");
            let second = folder.path().join(format!("{base} {variant}"));
            if !second.exists() {
                copy(&if *base == "adapter" { adapter.clone() } else { root(base) }, &second);
                change(&second, variant);
            }
            let mut trainer = match *command {
                "" => {
                    let rows = ["data.train_files=tests/data/sums.jsonl", "data.val_files=tests/data/sums.jsonl"];
                    let mut rl = of_task("");
                    rl.args(["--dry-run=plan", "data.train_batch_size=4"]).args(rows);
                    rl.arg("actor_rollout_ref.actor.ppo_mini_batch_size=4");
                    rl
                }
                stage => {
                    let mut stage = of_task(stage);
                    stage.args(["--dry-run=plan", "data.train_max_samples=16", "data.val_files=null", "data.train_batch_size=4"]);
                    stage
                }
            };
            trainer.args(*settings).arg(format!("{key}={}", second.display()));
            trainer.arg(format!("trainer.default_local_dir={}", folder.path().join("none").display()));
            let output = trainer.output().unwrap();
            let (code, messages) = (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned());
            let is_named =
                messages.contains("token") && (messages.contains(key) || messages.contains(&second.display().to_string()));
            match (variant, rule) {
                ("same", _) | (_, Rule::Own) => assert_eq!(code, Some(0), "{label}: {messages}"),
                // Additional tokens, the others unchanged: the rows are read correctly unless the two tokenizers are compared
                // token by token.
                ("larger", Rule::Refused) => {
                    assert!(code == Some(0) || code == Some(2) && is_named, "{label}: {code:?} {messages}")
                }
                (_, Rule::Refused) => assert!(code == Some(2) && is_named, "{label}: {code:?} {messages}"),
                // Too many tokens for the model are refused.
                (_, Rule::Named) => assert!(is_named && [Some(0), Some(2)].contains(&code), "{label}: {code:?} {messages}"),
            }
        }
    }
}
