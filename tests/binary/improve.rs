//! Every estimator and every loss improves the model of `data/` on its task.
//!
//! `BURNISH_CURVES=FOLDER BURNISH_STEPS=32 BURNISH_SEEDS=3 cargo test --release --test binary improve` keeps longer runs of all of
//! them with several seeds, which `scripts/bench/algorithm_curves.py` draws (docs/benchmarks/algorithms.md).

use std::path::{Path, PathBuf};

use burnish::algorithm::advantage::{ESTIMATORS, Need};
use burnish::algorithm::policy_loss::POLICY_LOSSES;
use rayon::prelude::*;
use serde_json::Value;

use crate::common::{rows, succeed, trainer};

/// The settings that an algorithm needs in addition to its name.
const OPTIONS: &[(&str, &[&str])] = &[
    // It learns only from groups with a single best response; most groups of eight have several.
    ("grpo_passk", &["actor_rollout_ref.rollout.n=2", "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=64"]),
    // The values of all training prompts would take longer than the run, and nothing clips the loss.
    (
        "a2po",
        &[
            "data.train_max_samples=512",
            "algorithm.a2po.num_value_samples=4",
            "actor_rollout_ref.actor.policy_loss.a2po_beta=0.03",
            "actor_rollout_ref.actor.ppo_mini_batch_size=64",
        ],
    ),
    ("gdpo", &["reward_model.reward_functions=[data_source,integer_format]"]),
    ("trl_gdpo", &["reward_model.reward_functions=[data_source,integer_format]"]),
    ("dro", &["actor_rollout_ref.actor.policy_loss.dro_beta=0.1"]),
    ("bypass_mode", &["algorithm.rollout_correction.bypass_mode=true"]),
];

const ACCURACY: &str = "val-core/burnish/arithmetic/acc/mean@1";

/// The accuracy before and after training.
fn accuracies(folder: &Path, name: &str, option: &str, seed: u64) -> (f64, f64) {
    let at = folder.join(name).join(seed.to_string());
    // The curves of an earlier call are replaced.
    _ = std::fs::remove_dir_all(&at);
    let steps = from_environment("BURNISH_STEPS", 12);
    let is_kept = std::env::var_os("BURNISH_CURVES").is_some();
    let mut command = trainer(&["--config", "arithmetic/first.yaml", &format!("{option}={name}")]);
    command.args([
        "actor_rollout_ref.actor.ppo_mini_batch_size=32",
        &format!("trainer.total_training_steps={steps}"),
        &format!("trainer.test_freq={}", if is_kept { steps.div_ceil(4) } else { steps }),
        &format!("trainer.seed={seed}"),
        "trainer.logger=[file]",
        &format!("trainer.default_local_dir={}", at.display()),
    ]);
    command.args(OPTIONS.iter().filter(|(of, _)| *of == name).flat_map(|(_, options)| *options));
    // As many runs as cores at the same time.
    command.env("RAYON_NUM_THREADS", "1");
    succeed(command);
    let rows = rows(&at);
    let accuracy = |row: &(u64, serde_json::Map<String, Value>)| row.1[ACCURACY].as_f64().unwrap();
    (accuracy(rows.first().unwrap()), accuracy(rows.last().unwrap()))
}

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |number| number.parse().unwrap())
}

#[expect(clippy::print_stdout, reason = "the accuracies are shown by --nocapture")]
fn all_improve(names: impl Iterator<Item = &'static str>, option: &str, folder: &str) {
    let kept = std::env::var_os("BURNISH_CURVES").map(|path| PathBuf::from(path).join(folder));
    let temporary = tempfile::tempdir().unwrap();
    let folder = kept.unwrap_or_else(|| temporary.path().to_owned());
    let seeds = 1..=from_environment("BURNISH_SEEDS", 1);
    let runs: Vec<_> = names.flat_map(|name| seeds.clone().map(move |seed| (name, seed))).collect();
    let results: Vec<_> =
        runs.into_par_iter().map(|(name, seed)| (name, seed, accuracies(&folder, name, option, seed))).collect();
    let report = results.iter().map(|(name, seed, (from, to))| format!("{name}, seed {seed}: {from:.3} to {to:.3}"));
    let report: Vec<String> = report.collect();
    // With 512 problems, the standard deviation of an accuracy is 0.022.
    assert!(results.iter().all(|(.., (from, to))| to - from > 0.08), "some did not improve by 0.08:\n{}", report.join("\n"));
    println!("{}", report.join("\n"));
}

#[test]
fn every_estimator_improves_the_model() {
    let names = ESTIMATORS.iter().filter(|e| !e.needs(Need::Critic)).map(|e| e.name);
    all_improve(names, "algorithm.adv_estimator", "estimators");
}

#[test]
fn every_loss_improves_the_model() {
    all_improve(POLICY_LOSSES.iter().map(|l| l.name), "actor_rollout_ref.actor.policy_loss.loss_mode", "losses");
}
