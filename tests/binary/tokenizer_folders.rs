//! The tokenizers of packaged and exported folders are equal here and in transformers.

use std::path::Path;
use std::process::Command;

use burnish::data::qwen2_steps::read_otherwise;

use crate::common::{copy, succeed, trainer};

/// Trains for a step and exports; returns the messages of the export.
fn exported(model: &str, folder: &Path) -> String {
    let run = folder.join("run");
    let mut sft =
        trainer(&["sft", "--config", "recipes/calculator/sft.yaml", "trainer.total_training_steps=1", "data.val_files=null"]);
    sft.args(["trainer.save_freq=1", "trainer.test_freq=-1", "data.train_max_samples=16", "data.train_batch_size=4"]);
    sft.args(["trainer.logger=[file]", "trainer.resume_mode=disable"]);
    sft.arg(format!("model.path={model}")).arg(format!("trainer.default_local_dir={}", run.display()));
    succeed(sft);
    let step = run.join("global_step_1");
    let export = trainer(&["export", step.to_str().unwrap(), "--output", folder.join("export").to_str().unwrap()]);
    String::from_utf8(succeed(export).stderr).unwrap()
}

/// The packaged Qwen2 model, and its export. If Python has transformers, it reads both.
#[test]
fn exports_are_tokenized_alike_in_transformers() {
    let folder = tempfile::tempdir().unwrap();
    let messages = exported("data/calculator/model", folder.path());
    assert!(!messages.contains("transformers 5"), "{messages}");
    let (packaged, export) = (Path::new(env!("CARGO_MANIFEST_DIR")).join("data/calculator/model"), folder.path().join("export"));
    assert_eq!(read_otherwise(&export).unwrap(), None);
    let read = |folder: &Path| std::fs::read(folder.join("tokenizer.json")).unwrap();
    assert!(read(&export) == read(&packaged));
    let python = std::env::var("BURNISH_HF_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let mut check = Command::new(&python);
    check.current_dir(env!("CARGO_MANIFEST_DIR")).arg("scripts/check/tokenizer_folders.py").args([&packaged, &export]);
    match check.output() {
        Ok(output) if output.status.code() != Some(3) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        }
        _ => println!("{python} has no transformers: exports are not compared (BURNISH_HF_PYTHON names another)"),
    }
}

/// A tokenizer that transformers would read differently is exported, with a warning.
#[test]
fn a_tokenizer_that_transformers_reads_otherwise_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("data/calculator/model"), &model);
    let path = model.join("tokenizer.json");
    let mut json: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    json["normalizer"] = serde_json::Value::Null;
    std::fs::write(&path, json.to_string()).unwrap();
    let messages = exported(model.to_str().unwrap(), folder.path());
    assert!(messages.contains("transformers 5 reads every qwen2 model") && messages.contains("another normalizer"), "{messages}");
}
