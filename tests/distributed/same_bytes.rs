//! Metrics, weights, the state of optimizers and whole checkpoints are the same bytes for any number of ranks.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use burnish::util::fs::files_under;

use crate::common::{small_run, succeed, text, trainer};
use crate::job::{has_mpi, job};

/// Three steps with gradients of four slices; the last step is saved.
const STEPS: &[&str] = &["trainer.total_training_steps=3", "trainer.save_freq=3", "trainer.gradient_slices=4"];

/// Returns the results of a run: its rows, and the files that have neither times nor the name of this machine.
fn result(run: &Path) -> (String, BTreeMap<PathBuf, Vec<u8>>) {
    let mut files = files_under(run).unwrap();
    files.retain(|path| path.starts_with("global_step_3") || path == Path::new("samples.jsonl"));
    (text(run), files.into_iter().map(|path| (path.clone(), fs::read(run.join(path)).unwrap())).collect())
}

/// Runs a command in one process without a launcher, and in one, two and three with it.
fn check(command: impl Fn(&Path) -> Command) {
    if !has_mpi() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // All runs use the same folder, because its name is in the checkpoint.
    let run = folder.path().join("run");
    let after = |command: Command| {
        succeed(command);
        let result = result(&run);
        fs::remove_dir_all(&run).unwrap();
        result
    };
    let mut alone = command(&run);
    alone.env("RAYON_NUM_THREADS", "1");
    let (rows, files) = after(alone);
    assert_eq!(rows.lines().last().and_then(|row| row.split(' ').next()), Some("3"), "{rows}");
    assert!(files.keys().any(|path| path.ends_with("optim.safetensors")), "{:?}", files.keys());
    for ranks in 1..=3 {
        let (other_rows, other_files) = after(job(ranks, command(&run)));
        assert_eq!(other_rows, rows, "{ranks} processes");
        assert_eq!(other_files.keys().collect::<Vec<_>>(), files.keys().collect::<Vec<_>>(), "{ranks} processes");
        let differing: Vec<&PathBuf> = files.keys().filter(|path| files[*path] != other_files[*path]).collect();
        assert!(differing.is_empty(), "{ranks} processes: {differing:?}");
    }
}

fn check_small(more: &[&str]) {
    check(|run| small_run(run, &[STEPS, more].concat()));
}

#[test]
fn rloo_with_kl_in_the_reward() {
    check_small(&["algorithm.adv_estimator=rloo", "algorithm.use_kl_in_reward=true", "algorithm.kl_ctrl.kl_coef=0.05"]);
}

#[test]
fn ppo_with_a_critic_by_optimizers_that_cut_in_other_places() {
    check_small(&[
        "algorithm.adv_estimator=gae",
        "actor_rollout_ref.actor.optim.lr=3e-3",
        "actor_rollout_ref.actor.optim.optimizer=Muon",
        "critic.optim.optimizer=Adafactor",
    ]);
}

#[test]
fn grpo_of_an_adapter_with_dynamic_sampling() {
    check_small(&[
        "algorithm.adv_estimator=grpo",
        "algorithm.filter_groups.enable=true",
        "algorithm.filter_groups.metric=acc",
        "actor_rollout_ref.model.lora_rank=4",
        "actor_rollout_ref.actor.use_kl_loss=true",
        "actor_rollout_ref.actor.optim.optimizer=AdamW8bit",
    ]);
}

#[test]
fn supervised_fine_tuning() {
    check(|run| {
        let mut command = trainer(&["sft", "--config", "arithmetic/first_sft.yaml"]);
        command.args(["data.train_batch_size=64", "trainer.logger=[file]"]).args(STEPS);
        command.arg(format!("trainer.default_local_dir={}", run.display()));
        command
    });
}
