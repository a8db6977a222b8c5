//! `trainer sft` on conversations: epochs, micro-batches by tokens, a custom chat template.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::common::{rows, succeed, trainer};

const RECIPE: &str = "defaults: [sft_trainer, _self_]
data: {messages_key: messages, val_files: null, train_batch_size: 4, micro_batch_size_per_gpu: 4, max_length: 64}
model:
  custom_chat_template: |
    {%- for m in messages %}{{ m.content ~ ('<eos>' if m.role == 'assistant') }}{% endfor %}
trainer: {total_epochs: 2, save_freq: after_each_epoch, logger: [file]}
";

#[test]
fn conversations_train_by_epochs_and_no_cut_changes_the_gradient() {
    let folder = tempfile::tempdir().unwrap();
    let say = |role: &str, content: String| json!({"role": role, "content": content});
    let talk = |n: usize| {
        let turns = (0..=n % 3).flat_map(|k| [say("user", format!("{n}+{k}=")), say("assistant", (n + k).to_string())]);
        format!("{}\n", json!({"messages": turns.collect::<Vec<_>>()}))
    };
    std::fs::write(folder.path().join("talks.jsonl"), (0..9).map(talk).collect::<String>()).unwrap();
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

/// A run that is resumed on another day writes prompts with the date on which it began.
#[test]
fn a_templates_date_is_that_of_the_first_start() {
    let folder = tempfile::tempdir().unwrap();
    let talk = |n: usize| {
        format!(
            "{}\n",
            json!({"messages": [{"role": "user", "content": format!("{n}=")}, {"role": "assistant", "content": "1"}]})
        )
    };
    std::fs::write(folder.path().join("talks.jsonl"), (0..8).map(talk).collect::<String>()).unwrap();
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
    let (said, parted) = run("parted", &[]);
    assert!(said.contains("resumed from"), "{said}");
    assert!(said.contains("is told 1999-12-31 (UTC)") && !said.contains("chat_template_date: "), "{said}");
    assert_eq!(losses(&whole), losses(&parted));
    let (_, other) = run("other", &["data.chat_template_date=1999-12-01"]);
    assert_ne!(losses(&whole), losses(&other));
    let kept = std::fs::read_to_string(parted.join("global_step_4/config.yaml")).unwrap();
    assert!(kept.contains("chat_template_date: 1999-12-31") || kept.contains("chat_template_date: '1999-12-31'"), "{kept}");
    // No template asks for the date.
    std::fs::write(folder.path().join("talks.yaml"), RECIPE).unwrap();
    let (said, _) = run("undated", &["data.chat_template_date=1999-12-31"]);
    assert!(said.contains("ignored: data.chat_template_date"), "{said}");
}
