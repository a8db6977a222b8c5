//! `trainer distill` with a teacher that has another tokenizer and another vocabulary.

use std::path::Path;
use std::process::Command;

use serde_json::{Map, Value, json};

use crate::common::{copy, of_task, rows, succeed, text};

/// Writes a small student whose tokens are numbers of one or two digits, where the teacher's are single digits, and rows of
/// right sums.
fn student(folder: &Path) {
    let model = folder.join("student");
    copy(Path::new("data/arithmetic/model"), &model);
    std::fs::remove_file(model.join("model.safetensors")).unwrap();
    let read = |path: &Path| -> Value { serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap() };
    let mut tokenizer = read(&model.join("tokenizer.json"));
    tokenizer["pre_tokenizer"]["pattern"]["Regex"] = json!("[0-9]{2}|[\\s\\S]");
    let own = tokenizer["model"]["vocab"].as_object().unwrap().clone();
    let numbers = (0..100).map(|n| (format!("{n:02}"), json!(own.len() + n)));
    let all: Map<String, Value> = own.clone().into_iter().chain(numbers).collect();
    let vocabulary = all.len();
    tokenizer["model"]["vocab"] = all.into();
    let mut config = read(Path::new("recipes/arithmetic/student/config.json"));
    config["vocab_size"] = json!(vocabulary);
    std::fs::write(model.join("tokenizer.json"), tokenizer.to_string()).unwrap();
    std::fs::write(model.join("config.json"), config.to_string()).unwrap();
    let sums: Vec<String> = (0..48u32)
        .map(|i| (10 + 7 * i % 83, 3 + 11 * i % 89))
        .map(|(a, b)| format!("{}\n", json!({"prompt": format!("{a}+{b}="), "answer": (a + b).to_string()})))
        .collect();
    std::fs::write(folder.join("rows.jsonl"), sums.concat()).unwrap();
}

fn distill(folder: &Path, name: &str, more: &[&str]) -> Command {
    let mut command = of_task("distill");
    for setting in [
        format!("data.train_files={}", folder.join("rows.jsonl").display()),
        format!("model.path={}", folder.join("student").display()),
        format!("trainer.default_local_dir={}", folder.join(name).display()),
    ] {
        command.arg(setting);
    }
    command.args(["data.prompt_key=prompt", "data.response_key=answer", "data.response_dict_keys=null", "data.val_files=null"]);
    command.args(["model.init=random", "model.tokenizer_path=null", "teacher.path=data/arithmetic/model"]);
    command.args(["data.train_batch_size=16", "data.max_length=32", "data.shuffle=false", "optim.lr=3e-3"]);
    command.args(["algorithm.loss_type=uld", "optim.lr_warmup_steps_ratio=0", "trainer.logger=[file]"]).args(more);
    command
}

fn column(run: &Path, key: &str) -> Vec<f64> {
    let number = |row: &Map<String, Value>| row.get(key).and_then(Value::as_f64);
    rows(run).iter().map(|(_, row)| number(row).unwrap_or_else(|| panic!("{key} in {row:?}"))).collect()
}

/// The loss falls with every form of the distance, and with the likelihood.
#[test]
fn a_student_learns_from_a_teacher_with_other_tokens() {
    let folder = tempfile::tempdir().unwrap();
    student(folder.path());
    for (name, more) in [
        ("sorted", &[][..]),
        ("observed", &["algorithm.uld_token_merge_strategy=observed"]),
        ("hybrid", &["algorithm.uld_use_hybrid_loss=true", "algorithm.uld_student_temperature=0.8"]),
        (
            "likelihood",
            &[
                "algorithm.uld_crossentropy_weight=0.5",
                "algorithm.uld_skip_student_eos=false",
                "algorithm.uld_skip_teacher_eos=false",
            ],
        ),
    ] {
        succeed(distill(folder.path(), name, &[&["trainer.total_training_steps=36"], more].concat()));
        let run = folder.path().join(name);
        let losses = column(&run, "train/distil_loss");
        let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
        let (first, last) = (mean(&losses[..3]), mean(&losses[33..]));
        println!("{name}: {first:.4} to {last:.4}");
        assert!(last < 0.8 * first, "{name}: {first} to {last}: {losses:?}");
        if name == "likelihood" {
            let all = column(&run, "train/nll_loss").into_iter().zip(&losses).zip(column(&run, "train/loss"));
            all.for_each(|((nll, distance), loss)| {
                assert!((0.5 * nll + distance - loss).abs() < 1e-9, "{nll} {distance} {loss}")
            });
        }
    }
}

/// The loss, its parts and the gradient do not depend on micro-batches, with one pass and with two.
#[test]
fn micro_batches_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    student(folder.path());
    for (name, more) in
        [("one", &[][..]), ("two", &["algorithm.uld_student_temperature=2.0", "algorithm.uld_use_hybrid_loss=true"])]
    {
        let run = |cut: &str| {
            let name = format!("{name}-{cut}");
            let size = format!("data.micro_batch_size_per_gpu={cut}");
            let settings = [size.as_str(), "trainer.total_training_steps=1", "algorithm.uld_crossentropy_weight=0.5"];
            succeed(distill(folder.path(), &name, &[&settings[..], more].concat()));
            folder.path().join(name)
        };
        let (whole, cut) = (run("16"), run("3"));
        let keys: Vec<String> = rows(&whole)[0].1.keys().filter(|key| key.starts_with("train/")).cloned().collect();
        assert!(keys.iter().any(|key| key == "train/distil_loss") && keys.iter().any(|key| key == "train/grad_norm"), "{keys:?}");
        for key in keys {
            let (a, b) = (column(&whole, &key)[0], column(&cut, &key)[0]);
            assert!((a - b).abs() <= 2e-5 * a.abs().max(1e-3), "{name} {key}: {a}, not {b}");
        }
    }
}

/// Without its loss, such a teacher is refused; with it, settings of other losses are refused or named.
#[test]
fn settings_of_other_losses_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    student(folder.path());
    for (why, more) in [
        ("for a teacher with other tokens, write algorithm.loss_type=uld", &["algorithm.loss_type=forward_kl"][..]),
        ("`algorithm.loss_type=uld` compares whole vocabularies", &["teacher.top_k=3"]),
        ("they cannot be packed alike", &["data.packing=bfd"]),
        ("are set together", &["algorithm.uld_hybrid_matched_weight=0.5"]),
        ("so nothing would be learnt", &["algorithm.uld_distillation_weight=0"]),
    ] {
        let output = distill(folder.path(), "refused", more).output().unwrap();
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && messages.contains(why), "{why}: {messages}");
    }
    let output = succeed(distill(folder.path(), "plan", &["--dry-run=plan", "algorithm.kd_coef=0.5"]));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(printed.contains("1·(ULD: distance of sorted probabilities) + 0·NLL"), "{printed}");
    assert!(printed.contains("algorithm.kd_coef"), "{printed}");
}

/// A run that stops after a checkpoint and resumes is byte-identical to one that did not stop.
#[test]
fn a_resumed_run_equals_one_that_never_stopped() {
    let folder = tempfile::tempdir().unwrap();
    student(folder.path());
    let start = |name: &str| succeed(distill(folder.path(), name, &["trainer.save_freq=1", "trainer.total_training_steps=3"]));
    start("whole");
    let (whole, resumed) = (folder.path().join("whole"), folder.path().join("resumed"));
    copy(&whole, &resumed);
    std::fs::remove_dir_all(resumed.join("global_step_3")).unwrap();
    std::fs::write(resumed.join("latest_checkpointed_iteration.txt"), "2").unwrap();
    start("resumed");
    assert_eq!(text(&whole), text(&resumed));
}
