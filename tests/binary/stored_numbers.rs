//! Files of values from another run: `ref.log_prob_path`, the file in the folder of a run, `teacher.logits_file`. Changed values
//! and impossible values are refused.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::common::{of_task, succeed, text};
use crate::tensor_edits::TensorFile;

/// The checksum of tensors in the program's format.
fn checksum(tensors: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for bytes in tensors {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    }
    format!("{:x}", hash.finalize())
}

fn stage(name: &str, at: &Path, more: &[&str]) -> Command {
    let mut command = of_task(name);
    command.arg(format!("trainer.default_local_dir={}", at.display()));
    command.args(["data.train_batch_size=4", "data.train_max_samples=8", "data.val_files=null", "trainer.logger=[file]"]);
    command.args(["trainer.total_training_steps=2", "trainer.resume_mode=disable"]).args(more);
    command
}

/// An edit of a file's tensors.
type Change = fn(&mut TensorFile);

fn refused(mut command: Command, key: &str, messages: &str) {
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && error.contains(messages) && error.contains(key), "{messages}: {error}");
}

#[test]
fn log_probabilities_that_cannot_be_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| folder.path().join(name));
    let name = "reference_log_probs.safetensors";
    succeed(stage("dpo", &first, &[]));
    let file = first.join(name);
    let key = format!("ref.log_prob_path={}", file.display());
    let whole = TensorFile::read(&file).metadata;
    let of_others: Value = serde_json::from_str(&whole["computed_of"]).unwrap();
    let set = |change: Change, sum: Option<bool>| {
        let mut tensors = TensorFile::read(&file);
        change(&mut tensors);
        let mut parts = of_others.clone();
        match sum {
            Some(true) => parts["sha256"] = json!(checksum(&[tensors.bytes("train"), tensors.bytes("val")])),
            Some(false) => {}
            None => _ = parts.as_object_mut().unwrap().remove("sha256"),
        }
        tensors.metadata.insert("computed_of".into(), parts.to_string());
        tensors.write(&file);
    };
    let before = std::fs::read(&file).unwrap();
    let cases: [(Change, Option<bool>, &str); 6] = [
        (|tensors| tensors.set("train", 3, -1.0), Some(false), "its values do not match the checksum"),
        (|_| (), None, "has no checksum"),
        (|tensors| tensors.set("train", 3, 50.0), Some(true), "holds 50 for response 3"),
        (|tensors| tensors.set("train", 0, -1e30), Some(true), "which is not the logarithm"),
        (|tensors| tensors.set("train", 0, f32::NAN), Some(true), "holds NaN"),
        (|tensors| tensors.set("train", 0, f32::NEG_INFINITY), Some(true), "holds -inf"),
    ];
    for (i, (change, sum, messages)) in cases.into_iter().enumerate() {
        set(change, sum);
        refused(stage("dpo", &second, &[&key]), "ref.log_prob_path", messages);
        // If the file is in the folder of a run, it is computed again.
        let again = folder.path().join(format!("again-{i}"));
        std::fs::create_dir(&again).unwrap();
        std::fs::copy(&file, again.join(name)).unwrap();
        let output = succeed(stage("dpo", &again, &[]));
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            error.contains("computing the reference's log-probabilities again") && error.contains(messages),
            "{messages}: {error}"
        );
        assert!(text(&again) == text(&first) && std::fs::read(again.join(name)).unwrap() == before, "{messages}");
        std::fs::write(&file, &before).unwrap();
    }
    succeed(stage("dpo", &second, &[&key]));
}

#[test]
fn tokens_of_a_teacher_that_cannot_be_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (run, file) = (folder.path().join("run"), folder.path().join("teacher.safetensors"));
    let key = format!("teacher.logits_file={}", file.display());
    let more = [key.as_str(), "teacher.top_k=3", "teacher.path=data/arithmetic/model", "algorithm.loss_type=forward_kl"];
    succeed(stage("distill", &run, &more));
    let whole = std::fs::read(&file).unwrap();
    let cases: [(Change, Option<bool>, &str); 7] = [
        (|tensors| tensors.set("log_probs", 0, -0.5), Some(false), "its values do not match the checksum"),
        (|_| (), None, "has no checksum"),
        (
            |tensors| {
                let ids = &mut tensors.tensors.get_mut("ids").unwrap().2;
                let first = [ids[6], ids[7]];
                ids[8..10].copy_from_slice(&first);
            },
            Some(true),
            "of trained token 1, the token",
        ),
        (|tensors| (0..3).for_each(|i| tensors.set("log_probs", i, 0.0)), Some(true), "the probabilities sum to 3"),
        (
            |tensors| (3..6).for_each(|i| tensors.set("log_probs", i, f32::NEG_INFINITY)),
            Some(true),
            "token 1, all probabilities are 0",
        ),
        (|tensors| tensors.set("log_probs", 5, -1e30), Some(true), "is not the logarithm of a probability"),
        (|tensors| tensors.set("log_probs", 5, f32::NAN), Some(true), "NaN is not the logarithm of a probability"),
    ];
    for (change, sum, messages) in cases {
        std::fs::write(&file, &whole).unwrap();
        let mut tensors = TensorFile::read(&file);
        change(&mut tensors);
        match sum {
            Some(true) => {
                let sum = checksum(&[tensors.bytes("ids"), tensors.bytes("log_probs")]);
                tensors.metadata.insert("sha256".into(), sum);
            }
            Some(false) => {}
            None => _ = tensors.metadata.remove("sha256"),
        }
        tensors.write(&file);
        refused(stage("distill", &run, &more), "teacher.logits_file", messages);
    }
    // A single probability of 0 is allowed.
    std::fs::write(&file, &whole).unwrap();
    let mut tensors = TensorFile::read(&file);
    tensors.set("log_probs", 5, f32::NEG_INFINITY);
    tensors.metadata.insert("sha256".into(), checksum(&[tensors.bytes("ids"), tensors.bytes("log_probs")]));
    tensors.write(&file);
    succeed(stage("distill", &run, &more));
}
