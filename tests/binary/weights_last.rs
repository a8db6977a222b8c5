//! Every error of settings and files comes before the first byte of weights is read, for every command and every kind of error.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::common::{of_task, small_run, trainer};
use crate::hub_server::{HubServer, TOKEN};

/// A model on a local Hub, with some changed values in config.json.
fn model(server: &HubServer, name: &str, changes: &Value) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/arithmetic/model");
    let mut config: Value = serde_json::from_slice(&fs::read(folder.join("config.json")).unwrap()).unwrap();
    changes.as_object().unwrap().iter().for_each(|(key, value)| config[key] = value.clone());
    server.put_folder(&format!("models/burnish/{name}"), &folder, &[("config.json", config.to_string().as_bytes())]);
}

const TRAIN: &str = "data.train_files=data/arithmetic/train.parquet";

/// A command of each pipeline that reads the weights of `burnish/MODEL`.
fn commands(name: &str, folder: &Path) -> Vec<(&'static str, Command)> {
    let model = format!("burnish/{name}");
    let stage = |stage: &'static str, more: &[String]| {
        let mut command = of_task(stage);
        command.args(["trainer.total_training_steps=1", &format!("model.path={model}")]);
        command.arg(format!("trainer.default_local_dir={}", folder.display())).args(more);
        (stage, command)
    };
    let own = |pairs: &[&str]| pairs.iter().map(|pair| (*pair).to_owned()).collect::<Vec<_>>();
    let rl = small_run(folder, &[&format!("actor_rollout_ref.model.path={model}")]);
    let mut generate = of_task("generate");
    generate.args(["data.path=data/arithmetic/test.parquet", &format!("model.path={model}")]);
    generate.arg(format!("data.output_path={}", folder.join("out.parquet").display()));
    let pairs = ["data.train_files=data/arithmetic/pairs/train.parquet", "data.val_files=null"];
    vec![
        ("rl", rl),
        stage("sft", &own(&[TRAIN, "data.val_files=null"])),
        stage("dpo", &own(&pairs)),
        stage("rm", &own(&pairs)),
        stage("distill", &[own(&[TRAIN, "data.val_files=null"]), vec![format!("teacher.path={model}")]].concat()),
        ("generate", generate),
        ("serve", trainer(&["serve", "--port", "0", "--model", &model])),
        ("serve-rm", trainer(&["serve-rm", "--port", "0", "--model", &model])),
    ]
}

/// Runs a command, which must fail with this text, without a request for weights.
fn refused(server: &HubServer, label: &str, mut command: Command, part: &str) {
    let home = tempfile::tempdir().unwrap();
    command.env("HF_ENDPOINT", &server.endpoint).env("HF_HOME", home.path()).env("HF_TOKEN", TOKEN).env_remove("HF_HUB_OFFLINE");
    server.requests();
    let output = command.output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    let requests = server.requests();
    let weights = requests.iter().filter(|request| request.path.contains("safetensors")).count();
    assert!(output.status.code() == Some(2) && message.contains(part), "{label}: {:?} {message}", output.status);
    assert_eq!(weights, 0, "{label}: requests for weights before {message}");
}

#[test]
fn a_model_is_refused_before_its_weights_are_downloaded() {
    let (server, folder) = (HubServer::start(), tempfile::tempdir().unwrap());
    for (name, changes, part) in [
        ("family", json!({"model_type": "qwen9_moe"}), "qwen9_moe"),
        ("quantised", json!({"quantization_config": {"bits": 4}}), "quantization_config"),
        ("key", json!({"head_dim": "two"}), "head_dim"),
        ("large", json!({"intermediate_size": 4_000_000_000_u64}), "memory"),
        ("short", json!({"max_position_embeddings": 2}), "position"),
    ] {
        model(&server, name, &changes);
        for (label, command) in commands(name, folder.path()) {
            // A server's prompts are unknown at the start, and memory errors appear when the model is loaded.
            if label.starts_with("serve") && ["large", "short"].contains(&name) {
                continue;
            }
            refused(&server, &format!("{name}, {label}"), command, part);
        }
    }
}

#[test]
fn settings_and_data_are_refused_before_weights_are_downloaded() {
    let (server, folder) = (HubServer::start(), tempfile::tempdir().unwrap());
    model(&server, "tiny", &json!({}));
    let refuse = |label: &str, setting: &str, part: &str| {
        for (pipeline, mut command) in commands("tiny", folder.path()).into_iter().filter(|(name, _)| *name == label) {
            command.arg(setting);
            refused(&server, &format!("{pipeline} {setting}"), command, part);
        }
    };
    for (label, setting, part) in [
        ("rl", "data.train_files=missing.parquet", "missing.parquet"),
        ("rl", "data.prompt_key=question", "question"),
        ("rl", "data.max_prompt_length=1", "max_prompt_length"),
        ("rl", "actor_rollout_ref.rollout.stop_token_ids=[99999]", "99999"),
        ("rl", "actor_rollout_ref.rollout.logit_bias={99999: 1}", "99999"),
        ("rl", "custom_reward_function.path=missing.py", "missing.py"),
        ("rl", "actor_rollout_ref.model.lora_adapter_path=/missing", "/missing"),
        ("sft", "data.train_files=missing.parquet", "missing.parquet"),
        ("sft", "data.prompt_key=question", "question"),
        ("sft", "data.max_length=1", "max_length"),
        ("dpo", "data.train_files=missing.parquet", "missing.parquet"),
        ("dpo", "data.prompt_key=question", "question"),
        ("rm", "data.train_files=missing.parquet", "missing.parquet"),
        ("rm", "data.chosen_key=best", "best"),
        ("distill", "data.train_files=missing.parquet", "missing.parquet"),
        ("distill", "data.response_key=reply", "reply"),
        ("generate", "data.path=missing.parquet", "missing.parquet"),
        ("generate", "data.prompt_key=question", "question"),
        ("generate", "rollout.prompt_length=1", "prompt_length"),
        ("generate", "data.output_path=/dev/null/out.parquet", "/dev/null/out.parquet"),
        ("serve", "--tool-format=none-such", "none-such"),
        ("serve", "--max-model-len=100000", "max-model-len"),
        ("serve", "--host=256.0.0.1", "256.0.0.1"),
        ("serve-rm", "--max-len=8", "no head that scores"),
    ] {
        refuse(label, setting, part);
    }
}

/// If a setting names a model only for its tokenizer, only the tokenizer is downloaded.
#[test]
fn a_tokenizer_comes_without_weights() {
    let server = HubServer::start();
    model(&server, "tiny", &json!({}));
    let arguments =
        ["serve", "--port", "0", "--model", "data/arithmetic/model", "--tokenizer", "burnish/tiny", "--tool-format", "none-such"];
    refused(&server, "serve --tokenizer", trainer(&arguments), "none-such");
}
