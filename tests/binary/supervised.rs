//! `trainer sft` on conversations: epochs, micro-batches by tokens, a custom chat template.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::common::{rows, succeed, trainer};
use crate::golden_steps;

const RECIPE: &str = "defaults: [sft_trainer, _self_]
data: {messages_key: messages, val_files: null, train_batch_size: 4, micro_batch_size_per_gpu: 4, max_length: 64}
model:
  path: data/arithmetic/model
  custom_chat_template: |
    {%- for m in messages %}{{ m.content ~ ('<eos>' if m.role == 'assistant') }}{% endfor %}
trainer: {total_epochs: 2, save_freq: after_each_epoch, logger: [file]}
";

#[test]
fn conversations_train_by_epochs_and_no_cut_changes_the_gradient() {
    let folder = tempfile::tempdir().unwrap();
    let say = |role: &str, content: String| json!({"role": role, "content": content});
    let conversation = |n: usize| {
        let turns = (0..=n % 3).flat_map(|k| [say("user", format!("{n}+{k}=")), say("assistant", (n + k).to_string())]);
        format!("{}\n", json!({"messages": turns.collect::<Vec<_>>()}))
    };
    std::fs::write(folder.path().join("talks.jsonl"), (0..9).map(conversation).collect::<String>()).unwrap();
    std::fs::write(folder.path().join("talks.yaml"), RECIPE).unwrap();
    let run = |name: &str, more: &[&str]| {
        let at = folder.path().join(name);
        let mut command = trainer(&["sft", "--config", folder.path().join("talks.yaml").to_str().unwrap()]);
        command.arg(format!("data.train_files={}", folder.path().join("talks.jsonl").display()));
        command.arg(format!("trainer.default_local_dir={}", at.display())).args(more);
        succeed(command);
        at
    };
    let whole = run("whole", &[]);
    let steps = |at: &Path| rows(at).into_iter().map(|(_, metrics)| metrics).collect::<Vec<Map<String, Value>>>();
    assert_eq!(steps(&whole).len(), 4, "nine rows fill two batches of four");
    assert!(steps(&whole).iter().all(|metrics| !metrics.contains_key("val/loss")));
    let saved = |step: usize| whole.join(format!("global_step_{step}")).exists();
    assert_eq!([1, 2, 3, 4].map(saved), [false, true, false, true]);
    let template = std::fs::read_to_string(whole.join("global_step_4/huggingface/chat_template.jinja")).unwrap();
    assert!(template.contains("m.role == 'assistant'"), "{template}");

    let tokens = run("tokens", &["data.use_dynamic_bsz=true", "data.max_token_len_per_gpu=64", "data.max_length=24"]);
    let single = run("single", &["data.micro_batch_size_per_gpu=1"]);
    for other in [tokens, single] {
        for (a, b) in steps(&whole).iter().zip(steps(&other)) {
            for key in ["train/loss", "train/grad_norm"] {
                let (a, b) = (a[key].as_f64().unwrap(), b[key].as_f64().unwrap());
                assert!((a / b - 1.0).abs() < 1e-3, "{key} at {}: {a} and {b}", other.display());
            }
        }
    }
}

/// A run resumed on another day writes prompts with the date of its start.
#[test]
fn a_templates_date_is_that_of_the_first_start() {
    let folder = tempfile::tempdir().unwrap();
    let conversation = |n: usize| {
        format!(
            "{}\n",
            json!({"messages": [{"role": "user", "content": format!("{n}=")}, {"role": "assistant", "content": "1"}]})
        )
    };
    std::fs::write(folder.path().join("talks.jsonl"), (0..8).map(conversation).collect::<String>()).unwrap();
    let dated = RECIPE.replace("{%- for m", "{{- strftime_now('%d') }}{%- for m");
    assert_ne!(dated, RECIPE);
    std::fs::write(folder.path().join("talks.yaml"), dated).unwrap();
    let run = |name: &str, more: &[&str]| {
        let at = folder.path().join(name);
        let mut command = trainer(&["sft", "--config", folder.path().join("talks.yaml").to_str().unwrap()]);
        command.arg(format!("data.train_files={}", folder.path().join("talks.jsonl").display()));
        command.arg(format!("trainer.default_local_dir={}", at.display())).args(more);
        (String::from_utf8(succeed(command).stderr).unwrap(), at)
    };
    let losses = |at: &Path| rows(at).into_iter().map(|(_, metrics)| metrics["train/loss"].clone()).collect::<Vec<Value>>();
    let (_, whole) = run("whole", &["data.chat_template_date=1999-12-31"]);
    // The same run, reset to its first checkpoint.
    let (_, parted) = run("parted", &["data.chat_template_date=1999-12-31"]);
    std::fs::remove_dir_all(parted.join("global_step_4")).unwrap();
    std::fs::write(parted.join("latest_checkpointed_iteration.txt"), "2").unwrap();
    let (messages, parted) = run("parted", &[]);
    assert!(messages.contains("resumed from"), "{messages}");
    assert!(messages.contains("1999-12-31 (UTC)") && !messages.contains("chat_template_date: "), "{messages}");
    assert_eq!(losses(&whole), losses(&parted));
    let (_, other) = run("other", &["data.chat_template_date=1999-12-01"]);
    assert_ne!(losses(&whole), losses(&other));
    let kept = std::fs::read_to_string(parted.join("global_step_4/config.yaml")).unwrap();
    assert!(kept.contains("chat_template_date: 1999-12-31") || kept.contains("chat_template_date: '1999-12-31'"), "{kept}");
    // No template asks for the date.
    std::fs::write(folder.path().join("talks.yaml"), RECIPE).unwrap();
    let (messages, _) = run("undated", &["data.chat_template_date=1999-12-31"]);
    assert!(messages.contains("ignored: data.chat_template_date"), "{messages}");
}

/// All golden steps of TRL's SFTTrainer: losses, masks, packing and weight decay, on several families.
#[test]
fn golden_steps_of_supervised_fine_tuning() {
    let folder = tempfile::tempdir().unwrap();
    for (name, golden) in golden_steps::golden_steps("sft_") {
        let options = &golden["options"];
        let mut own = vec!["data.loss_mask=auto".to_owned()];
        match golden["data"].as_str().unwrap() {
            "messages" => own.push("data.messages_key=messages".to_owned()),
            _ => own.extend(
                ["data.messages_key=null", "data.response_dict_keys=null", "data.completion_key=completion"].map(str::to_owned),
            ),
        }
        if golden["data"] == "messages" && options["assistant_only_loss"] != true {
            own[0] = "data.loss_mask=all".to_owned();
        }
        let packing = options["packing_strategy"].as_str().unwrap_or("bfd");
        let longest = &options["max_length"];
        if options["packing"] == true {
            own.extend([format!("data.packing={packing}"), format!("data.packing_length={longest}")]);
        }
        own.extend(options["loss_type"].as_str().map(|loss| format!("algorithm.loss_type={loss}")));
        // TRL's bfd cuts a row that is longer than a bin.
        if options["packing"] == true && packing == "bfd" {
            own.extend([format!("data.max_length={longest}"), "data.truncation=right".to_owned()]);
        }
        let data = folder.path().join("rows.jsonl");
        let units = units(&[golden_steps::settings(&golden, &data, 1), own.clone()].concat());
        let settings = [golden_steps::settings(&golden, &data, units), own].concat();
        golden_steps::check("sft", &name, &golden, &settings, folder.path(), |metric| {
            let name = if metric == "num_tokens" { "global_tokens" } else { metric };
            Some(format!("train/{name}"))
        });
    }
}

/// Returns the number of examples that a run would train on.
fn units(settings: &[String]) -> usize {
    let mut command = trainer(&["sft", "--config", "arithmetic/first_sft.yaml", "--dry-run=plan"]);
    let page = String::from_utf8(
        succeed({
            command.args(settings);
            command
        })
        .stdout,
    )
    .unwrap();
    let line = page.lines().find_map(|line| line.strip_prefix("training")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// A run whose validations no longer improve ends, with its best and its last step saved, and the same command finds no steps
/// left. Errors about the metric are reported before the first step.
#[test]
fn a_run_without_improvement_stops_early() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("run");
    let command = |more: &[&str]| {
        let mut command = trainer(&["sft", "--config", "arithmetic/first_sft.yaml", "optim.lr=0", "data.train_batch_size=4"]);
        command.args([
            "data.train_max_samples=40",
            "data.val_max_samples=4",
            "trainer.total_training_steps=9",
            "trainer.test_freq=1",
        ]);
        command.args(["trainer.metric_for_best_model=val/loss", "trainer.early_stopping_patience=2", "trainer.save_freq=1"]);
        command.arg(format!("trainer.default_local_dir={}", at.display())).args(more);
        command
    };
    let run = |more: &[&str]| String::from_utf8(succeed(command(more)).stderr).unwrap();
    let output = command(&["trainer.metric_for_best_model=eval_loss"]).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && stderr.contains("Did you mean \"val/loss\"?") && !at.exists(), "{stderr}");
    let messages = run(&[]);
    assert!(messages.contains("2 validations in a row without an improvement: the run ends after step 3"), "{messages}");
    assert_eq!(rows(&at).len(), 3);
    assert!(at.join("global_step_3").is_dir());
    let file = |name: &str| std::fs::read_to_string(at.join(name)).unwrap();
    assert_eq!(file("best_checkpointed_iteration.txt").trim(), "1");
    assert!(file("run.json").contains("finished"), "{}", file("run.json"));
    let messages = run(&[]);
    assert!(
        messages.contains("the run ended early, after step 3") && rows(&at).len() == 3,
        "nothing is left to train: {messages}"
    );
    run(&["trainer.early_stopping_patience=4"]);
    assert_eq!(rows(&at).len(), 5, "with more patience it continues");
    let from = format!("trainer.resume_from_path={}", at.join("global_step_5").display());
    let messages = run(&["algorithm.label_smoothing=0.5", "trainer.resume_mode=resume_path", &from]);
    assert!(messages.contains("validation has changed: algorithm.label_smoothing") && rows(&at).len() == 8, "{messages}");
    // A greater accuracy is better.
    let (accuracy, other) = ("val/mean_token_accuracy", folder.path().join("other"));
    let more = ["optim.lr=1e-2", "trainer.total_training_steps=4", "trainer.early_stopping_patience=null"];
    let place: [String; 2] =
        [format!("trainer.metric_for_best_model={accuracy}"), format!("trainer.default_local_dir={}", other.display())];
    run(&[&more[..], &[&place[0], &place[1]]].concat());
    let values: Vec<f64> = rows(&other).iter().map(|(_, row)| row[accuracy].as_f64().unwrap()).collect();
    let greatest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let step = 1 + values.iter().position(|value| *value == greatest).unwrap();
    assert!(values.iter().any(|value| *value < greatest), "{values:?}");
    assert_eq!(std::fs::read_to_string(other.join("best_checkpointed_iteration.txt")).unwrap(), step.to_string());
}
