//! `--dry-run` measures small steps of every kind of run, and writes nothing.

use std::path::Path;
use std::process::Command;

use serde_json::{Map, Value};

use super::common::{succeed, trainer};

/// A command that trains, the phases that its dry run must have measured, and its settings.
struct Measured {
    command: &'static [&'static str],
    config: &'static str,
    phases: &'static [&'static str],
    settings: &'static [&'static str],
}

const SMALL_RL: &[&str] = &[
    "data.train_batch_size=4",
    "data.val_max_samples=4",
    "data.max_response_length=20",
    "actor_rollout_ref.rollout.n=2",
    "actor_rollout_ref.actor.ppo_mini_batch_size=2",
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2",
];
const SMALL: &[&str] = &["data.train_batch_size=4", "data.val_max_samples=4"];

const fn rl(config: &'static str, phases: &'static [&'static str], settings: &'static [&'static str]) -> Measured {
    Measured { command: &[], config, phases, settings }
}

const fn stage(command: &'static [&'static str], config: &'static str) -> Measured {
    Measured { command, config, phases: &["update"], settings: &[] }
}

const ALL: &[Measured] = &[
    rl("arithmetic/first.yaml", &["gen", "old_log_prob", "update_actor"], &[]),
    rl("recipes/arithmetic/ppo.yaml", &["gen", "values", "update_critic", "update_actor"], &["critic.ppo_mini_batch_size=2"]),
    rl("recipes/arithmetic/dapo.yaml", &["gen", "update_actor"], &["data.gen_batch_size=4"]),
    rl("recipes/calculator/grpo.yaml", &["gen", "update_actor"], &[]),
    stage(&["sft"], "arithmetic/first_sft.yaml"),
    stage(&["dpo"], "arithmetic/first_dpo.yaml"),
    stage(&["rm"], "arithmetic/first_rm.yaml"),
    stage(&["distill"], "arithmetic/first_distill.yaml"),
];

impl Measured {
    fn command(&self, folder: &Path, more: &[&str]) -> Command {
        let mut command = trainer(self.command);
        let small = if self.command.is_empty() { SMALL_RL } else { SMALL };
        command.args(["--config", self.config]).args(small).args(self.settings).args(more);
        command.arg(format!("trainer.default_local_dir={}", folder.display()));
        command
    }
}

#[test]
fn every_kind_of_run_is_measured_and_nothing_is_written() {
    for run in ALL {
        let folder = tempfile::tempdir().unwrap();
        let run_folder = folder.path().join("run");
        let text = |more: &[&str]| String::from_utf8(succeed(run.command(&run_folder, more)).stdout).unwrap();
        let measured = text(&["--dry-run", "trainer.price_per_hour=3600000"]);
        let line = |name: &str| {
            let is_one = |line: &&str| line.trim_start().split("  ").next() == Some(name);
            measured.lines().rfind(is_one).unwrap_or_else(|| panic!("{}: no line {name}\n{measured}", run.config))
        };
        assert!(line("time").contains("measured with all 4 "), "{measured}");
        for phase in run.phases.iter().chain(&["step"]) {
            let numbers: Vec<f64> = line(phase).split_whitespace().filter_map(|word| word.parse().ok()).collect();
            let columns = if run.command.is_empty() { 1..=2 } else { 1..=1 };
            assert!(columns.contains(&numbers.len()) && numbers.iter().all(|seconds| *seconds > 0.0), "{phase}\n{measured}");
        }
        for name in ["total", "cost", "peak", "not in it", "memory"] {
            line(name);
        }
        // A thousand a second: as many thousands as seconds.
        let cost: f64 = line("cost").split_whitespace().nth(1).unwrap().trim_end_matches(',').parse().unwrap();
        assert!(cost > 0.0, "{measured}");
        let plan = text(&["--dry-run=plan"]);
        assert!(plan.contains("memory") && !plan.contains("\ntime") && !plan.contains("\ntotal"), "{plan}");
        assert!(!run_folder.exists(), "{}: a dry run wrote files", run.config);
    }
}

/// A function whose calls leave a trace is not called, and the error of a step is a line of the answer.
#[test]
fn reward_functions_are_not_called() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("called");
    let code =
        format!("def compute_score(**kwargs):\n    open({:?}, 'a').write('x')\n    return 1.0\n", trace.display().to_string());
    let reward = folder.path().join("reward.py");
    std::fs::write(&reward, code).unwrap();
    let mut command = ALL[0].command(&folder.path().join("run"), &["--dry-run"]);
    command.arg(format!("custom_reward_function.path={}", reward.display()));
    let text = String::from_utf8(succeed(command).stdout).unwrap();
    assert!(text.contains("update_actor") && text.contains("reward functions"), "{text}");
    assert!(!trace.exists(), "the function was called");
}

/// A run for a larger machine is described, and not measured.
#[test]
fn a_run_that_lacks_memory_is_not_measured() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model");
    std::fs::create_dir(&model).unwrap();
    for name in ["config.json", "tokenizer.json", "tokenizer_config.json"] {
        std::fs::copy(format!("data/arithmetic/model/{name}"), model.join(name)).unwrap();
    }
    let mut config: Map<String, Value> = serde_json::from_slice(&std::fs::read(model.join("config.json")).unwrap()).unwrap();
    for (key, value) in [("hidden_size", 8192), ("intermediate_size", 32_768), ("num_hidden_layers", 4000)] {
        config.insert(key.to_owned(), value.into());
    }
    std::fs::write(model.join("config.json"), Value::Object(config).to_string()).unwrap();
    let mut command = ALL[0].command(&folder.path().join("run"), &["--dry-run", "actor_rollout_ref.model.init=random"]);
    command.arg(format!("actor_rollout_ref.model.path={}", model.display()));
    let text = String::from_utf8(succeed(command).stdout).unwrap();
    assert!(text.contains("time        not measured: this machine has ") && text.contains("memory"), "{text}");
}
