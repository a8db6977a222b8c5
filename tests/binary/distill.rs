//! `trainer distill`: TRL's values, divisions of a batch, a teacher's stored tokens, and resuming.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::common::{copy, of_task, parts_of_memory, rows, succeed, text};
use crate::golden_steps::goldens;

/// A run on the rows of a golden file, in their order.
fn distill(folder: &Path, name: &str, golden: &Value, more: &[&str]) -> Command {
    let data = folder.join("rows.jsonl");
    let lines = |rows: &Value| rows.as_array().unwrap().iter().map(|row| format!("{row}\n")).collect::<String>();
    std::fs::write(&data, lines(&golden["rows"])).unwrap();
    let model = |role: &str| goldens().join("models").join(golden["model"][role].as_str().unwrap());
    let mut command = of_task("distill");
    for setting in [
        format!("data.train_files={}", data.display()),
        format!("model.path={}", model("student").display()),
        format!("model.tokenizer_path={}", goldens().join("offline/e2e/tokenizer").display()),
        format!("teacher.path={}", model("teacher").display()),
        format!("trainer.default_local_dir={}", folder.join(name).display()),
    ] {
        command.arg(setting);
    }
    let rows = golden["options"]["rows_used"].as_u64().unwrap_or(golden["rows"].as_array().unwrap().len() as u64);
    command.arg(format!("data.train_batch_size={rows}")).arg(format!("data.train_max_samples={rows}"));
    command.args(["data.messages_key=messages", "data.val_files=null", "data.shuffle=false", "data.max_length=64"]);
    command.args(["optim.lr=1e-3", "optim.weight_decay=0", "optim.lr_warmup_steps_ratio=0", "optim.lr_scheduler_type=constant"]);
    command.args(["trainer.total_training_steps=1", "trainer.logger=[file]"]).args(more);
    command
}

fn golden(name: &str) -> Value {
    let path = goldens().join("offline/e2e").join(name);
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn metric(run: &Path, step: usize, key: &str) -> f64 {
    let row = &rows(run)[step - 1].1;
    row.get(key).and_then(Value::as_f64).unwrap_or_else(|| panic!("{key} in {row:?}"))
}

fn near(label: &str, got: f64, expected: f64, tolerance: f64) {
    assert!((got - expected).abs() <= tolerance * expected.abs(), "{label}: {got}, not {expected}");
}

/// GKDTrainer.compute_loss on real students and teachers: loss and norm of the gradient.
#[test]
fn golden_distillation_of_trl() {
    let files = std::fs::read_dir(goldens().join("offline/e2e")).unwrap();
    let names = files.map(|entry| entry.unwrap().file_name().into_string().unwrap()).filter(|name| name.starts_with("gkd_"));
    let mut cases = 0;
    for name in names {
        let golden = golden(&name);
        for result in golden["results"].as_array().unwrap() {
            let folder = tempfile::tempdir().unwrap();
            let settings = [
                "algorithm.loss_type=jsd".to_owned(),
                format!("algorithm.beta={}", result["beta"]),
                format!("algorithm.temperature={}", result["temperature"]),
            ];
            succeed(distill(folder.path(), "run", &golden, &settings.each_ref().map(String::as_str)));
            let run = folder.path().join("run");
            for (key, expected) in [("train/loss", &result["loss"]), ("train/grad_norm", &result["grad_norm"])] {
                near(&format!("{name} {settings:?} {key}"), metric(&run, 1, key), expected.as_f64().unwrap(), 1e-5);
            }
            cases += 1;
        }
    }
    assert!(cases > 0, "no goldens of distillation");
}

/// The loss, its parts and the gradient do not depend on micro-batches, with one pass for both parts and with two.
#[test]
fn micro_batches_change_nothing() {
    let golden = golden("gkd_llama.json");
    let folder = tempfile::tempdir().unwrap();
    for options in [
        &["algorithm.loss_type=jsd", "algorithm.beta=0.3", "algorithm.kd_coef=0.4", "algorithm.temperature=2.0"][..],
        &["teacher.top_k=5", "algorithm.kd_coef=0.4", "algorithm.log_prob_min_clamp=-7"],
    ] {
        let run = |name: &str, more: &[&str]| {
            let at = folder.path().join(format!("{name}{}", options.len()));
            let name = at.file_name().unwrap().to_str().unwrap();
            succeed(distill(folder.path(), name, &golden, &[options, more].concat()));
            at
        };
        let whole = run("whole", &[]);
        let cuts = [
            run("one", &["data.micro_batch_size_per_gpu=1"]),
            run("three", &["data.micro_batch_size_per_gpu=3"]),
            run("dynamic", &["data.use_dynamic_bsz=true", "data.max_token_len_per_gpu=70"]),
        ];
        let keys: Vec<String> = rows(&whole)[0].1.keys().filter(|key| key.starts_with("train/")).cloned().collect();
        assert!(keys.iter().any(|key| key == "train/distil_loss") && keys.iter().any(|key| key == "train/nll_loss"), "{keys:?}");
        let loss = 0.6 * metric(&whole, 1, "train/nll_loss") + 0.4 * metric(&whole, 1, "train/distil_loss");
        near("the sum of the parts", metric(&whole, 1, "train/loss"), loss, 1e-9);
        for cut in &cuts {
            for key in &keys {
                near(&format!("{} {key}", cut.display()), metric(cut, 1, key), metric(&whole, 1, key), 2e-5);
            }
        }
    }
}

/// A file of the teacher's tokens replaces the teacher, and is refused if it does not fit. A file with all tokens of the
/// vocabulary equals the teacher itself.
#[test]
fn stored_tokens_stand_for_the_teacher() {
    let golden = golden("gkd_qwen2.json");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("teacher.safetensors");
    let stored = format!("teacher.logits_file={}", file.display());
    let run = |name: &str, more: &[&str]| {
        let steps = [&["trainer.total_training_steps=3", "data.train_batch_size=2"], more].concat();
        succeed(distill(folder.path(), name, &golden, &steps));
        folder.path().join(name)
    };
    let losses = |run: &Path| (1..=3).map(|step| metric(run, step, "train/loss")).collect::<Vec<f64>>();
    let written = run("written", &["teacher.top_k=8", &stored]);
    let read = run("read", &["teacher.path=null", &stored]);
    assert_eq!(text(&written), text(&read), "with the file no teacher is needed");
    let live = run("live", &["teacher.top_k=8"]);
    losses(&live).iter().zip(losses(&read)).for_each(|(a, b)| near("a teacher that runs along", *a, b, 1e-5));

    let all = run("all", &["teacher.top_k=256"]);
    let whole = run("whole", &["algorithm.loss_type=forward_kl"]);
    losses(&all).iter().zip(losses(&whole)).for_each(|(a, b)| near("all tokens", *a, b, 1e-4));
    std::fs::remove_file(&file).unwrap();
    let narrow = run("narrow", &["teacher.top_k=8", &stored, "teacher.logits_dtype=float16"]);
    losses(&narrow).iter().zip(losses(&read)).for_each(|(a, b)| near("float16", *a, b, 1e-2));

    for (why, more) in [
        ("other rows", &["data.max_length=20", "data.truncation=right"][..]),
        ("algorithm.temperature=1, not 2", &["algorithm.temperature=2.0"]),
        ("teacher.top_k is 5", &["teacher.top_k=5"]),
        ("another teacher", &["model.init=random", &format!("teacher.path={}", goldens().join("models/qwen2").display())]),
        ("`algorithm.loss_type` must be forward_kl", &["algorithm.loss_type=jsd"]),
    ] {
        let settings = [&[stored.as_str(), "data.train_batch_size=2"], more].concat();
        let output = distill(folder.path(), "refused", &golden, &settings).output().unwrap();
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && messages.contains(why), "{why}: {messages}");
    }
    std::fs::write(&file, b"no safetensors").unwrap();
    let output = distill(folder.path(), "refused", &golden, &[&stored]).output().unwrap();
    assert!(output.status.code() == Some(2) && String::from_utf8_lossy(&output.stderr).contains("damaged"));
}

/// A run that stops after a checkpoint and resumes is byte-identical to one that did not stop.
#[test]
fn a_resumed_distillation_equals_one_that_never_stopped() {
    let golden = golden("gkd_llama.json");
    let folder = tempfile::tempdir().unwrap();
    let options = ["trainer.save_freq=1", "trainer.total_training_steps=4", "data.train_batch_size=2", "data.shuffle=true"];
    let start = |name: &str| succeed(distill(folder.path(), name, &golden, &options));
    start("whole");
    let (whole, resumed) = (folder.path().join("whole"), folder.path().join("resumed"));
    copy(&whole, &resumed);
    for step in [3, 4] {
        std::fs::remove_dir_all(resumed.join(format!("global_step_{step}"))).unwrap();
    }
    std::fs::write(resumed.join("latest_checkpointed_iteration.txt"), "2").unwrap();
    start("resumed");
    assert_eq!(text(&whole), text(&resumed));
    let weights = |run: &Path| std::fs::read(run.join("global_step_4/huggingface/model.safetensors")).unwrap();
    assert!(weights(&whole) == weights(&resumed), "the weights differ");
}

/// An error names a teacher with other tokens before training.
#[test]
fn a_teacher_with_other_tokens_is_refused() {
    let golden = golden("gkd_llama.json");
    let folder = tempfile::tempdir().unwrap();
    let teacher = folder.path().join("teacher");
    copy(&goldens().join("models").join(golden["model"]["teacher"].as_str().unwrap()), &teacher);
    let path = teacher.join("config.json");
    let mut config: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    config["vocab_size"] = json!(300);
    std::fs::write(&path, config.to_string()).unwrap();
    let setting = format!("teacher.path={}", teacher.display());
    for more in [&[setting.as_str()][..], &[&setting, "--dry-run=plan"]] {
        let output = distill(folder.path(), "refused", &golden, more).output().unwrap();
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(2) && messages.contains("its vocabulary has 300 tokens, the student's 256"),
            "{messages}"
        );
    }
    let output = distill(folder.path(), "refused", &golden, &["teacher.path=null"]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("so there is no teacher"));
}

/// Memory of a teacher: weights, pass and chunk if it runs during training; only its weights if it is dropped before the first
/// step.
#[test]
fn a_dry_run_counts_the_teacher() {
    let folder = tempfile::tempdir().unwrap();
    let golden = golden("gkd_llama.json");
    let file = format!("teacher.logits_file={}", folder.path().join("teacher.safetensors").display());
    for (more, parts) in
        [(&[][..], 3), (&["teacher.top_k=4"], 2), (&["teacher.top_k=4", &file], 1), (&["algorithm.kd_coef=0"], 0)]
    {
        let report = succeed(distill(folder.path(), "run", &golden, &[&["--dry-run=plan"], more].concat()));
        assert_eq!(parts_of_memory(&report, "teacher"), parts, "{more:?}: {}", String::from_utf8_lossy(&report.stdout));
    }
}
