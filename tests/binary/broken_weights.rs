//! An update that breaks the weights ends the run: its results are not saved, and the run can be resumed from the earlier
//! checkpoint.

use std::path::Path;
use std::process::Command;

use burnish::model::weights::read_safetensors;
use burnish::util::crc::IEEE;
use serde_json::{Value, json};

use crate::common::{copy, of_task, small_run, succeed};
use crate::serve::Server;
use crate::tensor_edits::TensorFile;

/// A pipeline, its settings, and the key of the raised learning rate.
const PIPELINES: &[(&str, &[&str], &str)] = &[
    ("grpo", &["trainer.val_before_train=false"], "actor_rollout_ref.actor.optim.lr"),
    ("grpo", &["trainer.val_before_train=false", "actor_rollout_ref.model.lora_rank=4"], "actor_rollout_ref.actor.optim.lr"),
    (
        "grpo",
        &[
            "trainer.val_before_train=false",
            "actor_rollout_ref.actor.use_kl_loss=true",
            "actor_rollout_ref.ref.sync_ref_model=true",
            "actor_rollout_ref.ref.ref_model_sync_steps=1",
        ],
        "actor_rollout_ref.actor.optim.lr",
    ),
    ("gae", &["trainer.val_before_train=false"], "critic.optim.lr"),
    ("sft", &[], "optim.lr"),
    ("sft", &["model.lora_rank=4"], "optim.lr"),
    ("dpo", &[], "optim.lr"),
    ("rm", &[], "optim.lr"),
    ("distill", &["teacher.path=data/arithmetic/model"], "optim.lr"),
];

fn run(pipeline: &str, at: &Path, settings: &[&str], more: &[&str]) -> Command {
    let own = ["trainer.save_freq=1", "trainer.test_freq=-1"];
    match pipeline {
        "grpo" | "gae" => {
            let mut command = small_run(at, &own);
            command.arg(format!("algorithm.adv_estimator={pipeline}"));
            command.args(["trainer.max_actor_ckpt_to_keep=1", "data.val_max_samples=8"]).args(settings).args(more);
            command
        }
        stage => {
            let mut command = of_task(stage);
            command.args(own).arg(format!("trainer.default_local_dir={}", at.display()));
            command.args([
                "data.train_batch_size=4",
                "data.train_max_samples=16",
                "data.val_files=null",
                "trainer.logger=[file]",
            ]);
            command.args(["trainer.max_ckpt_to_keep=1", "optim.lr_warmup_steps_ratio=0"]).args(settings).args(more);
            command
        }
    }
}

fn steps(at: &Path) -> Vec<String> {
    let names = std::fs::read_dir(at).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("global_step_")).collect();
    names.sort();
    names
}

#[test]
fn weights_that_an_update_broke_are_not_saved_and_remove_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for (number, (pipeline, settings, key)) in PIPELINES.iter().enumerate() {
        let at = folder.path().join(number.to_string());
        succeed(run(pipeline, &at, settings, &["trainer.total_training_steps=1"]));
        for lr in ["1e38", "1e20"] {
            let label = format!("{pipeline} {settings:?} {key}={lr}");
            let mut broken = run(pipeline, &at, settings, &["trainer.total_training_steps=3", &format!("{key}={lr}")]);
            let output = broken.output().unwrap();
            let message = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{label}: {message}");
            for part in ["step 2: the update made weights of `", &format!("lower {key}"), "the checkpoint of step 1 stays"] {
                assert!(message.contains(part), "{label}: {part}: {message}");
            }
            assert_eq!(steps(&at), ["global_step_1"], "{label}");
        }
        // The remaining checkpoint is complete, so the run resumes from it.
        succeed(run(pipeline, &at, settings, &["trainer.total_training_steps=2"]));
        assert_eq!(steps(&at), ["global_step_2"], "{pipeline}");
    }
}

/// A model with finite weights whose numbers overflow: no command returns its tokens.
#[test]
fn tokens_of_a_model_without_finite_numbers_are_not_returned() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("data/arithmetic/model"), &model);
    let weights = model.join("model.safetensors");
    let mut file = TensorFile::read(&weights);
    for at in 0..file.bytes("model.norm.weight").len() / 4 {
        file.set("model.norm.weight", at, 1e38);
    }
    file.write(&weights);
    let (model, output) = (model.display().to_string(), folder.path().join("out.parquet"));

    let mut generate = of_task("generate");
    generate.args([
        "data.path=data/arithmetic/test.parquet",
        "rollout.response_length=4",
        "data.batch_size=2",
        &format!("model.path={model}"),
    ]);
    let generated = generate.arg(format!("data.output_path={}", output.display())).output().unwrap();
    let message = String::from_utf8_lossy(&generated.stderr).into_owned();
    assert!(generated.status.code() == Some(1) && message.contains("are not finite: its weights"), "{message}");
    assert!(!output.exists());

    let server = Server::of(&model, &[]);
    let (status, text) = server.ask("/completions", &json!({"prompt": "1+2=", "max_tokens": 4}), "");
    assert!(status == 500 && text.contains("are not finite: its weights"), "{status} {text}");
}

/// Updates the manifest of a checkpoint for a changed file.
fn agree(step: &Path, file: &Path) {
    let path = step.join("manifest.json");
    let mut manifest: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let bytes = std::fs::read(file).unwrap();
    let mut entries = manifest["files"].as_array_mut().unwrap().iter_mut();
    let entry = entries.find(|entry| file.ends_with(entry["path"].as_str().unwrap())).unwrap();
    (entry["bytes"], entry["crc32"]) = (json!(bytes.len()), json!(format!("{:08x}", IEEE.checksum(&bytes))));
    std::fs::write(path, manifest.to_string()).unwrap();
}

/// A foreign checkpoint whose manifest agrees with its files is checked value by value.
#[test]
fn numbers_that_no_update_leaves_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("run");
    succeed(run("sft", &at, &[], &["trainer.total_training_steps=1"]));
    let step = at.join("global_step_1");
    let (weights, state) = (step.join("huggingface/model.safetensors"), step.join("optim.safetensors"));
    assert!(read_safetensors(&weights).unwrap().values().flatten().all(|x| x.is_finite()));
    for (file, end, number) in [
        (&weights, "norm.weight", f32::NAN),
        (&weights, "embed_tokens.weight", f32::INFINITY),
        (&state, ".exp_avg", f32::NEG_INFINITY),
        (&state, ".exp_avg_sq", f32::NAN),
        (&state, ".exp_avg_sq", -1.0),
    ] {
        let before = std::fs::read(file).unwrap();
        let manifest = std::fs::read(step.join("manifest.json")).unwrap();
        let mut tensors = TensorFile::read(file);
        let name = tensors.tensors.keys().find(|name| name.ends_with(end)).unwrap().clone();
        tensors.set(&name, 0, number);
        tensors.write(file);
        agree(&step, file);
        let output = run("sft", &at, &[], &["trainer.total_training_steps=2"]).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        let is_named = message.contains(end) && message.contains("holds");
        assert!(output.status.code() == Some(2) && is_named, "{end} {number}: {:?} {message}", output.status.code());
        std::fs::write(file, before).unwrap();
        std::fs::write(step.join("manifest.json"), manifest).unwrap();
    }
}
