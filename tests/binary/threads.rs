//! A run does not depend on the number of threads or on burn's default device. The number of threads decides which thread does
//! which part of the work and never the order of sums. The default device may differ from the chosen one.
//!
//! All threads that compute, including the threads of burn and gemm, belong to rayon's single pool, and `RAYON_NUM_THREADS` is
//! their number. `reward.num_workers` more threads score.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use burnish::util::fs::files_under;

use crate::common::{small_run, text, trainer};

/// The files with weights and moments of a run, with their contents.
fn weights(run: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = files_under(run).unwrap();
    files.retain(|path| path.extension().is_some_and(|kind| kind == "safetensors"));
    files.into_iter().map(|path| (path.clone(), std::fs::read(run.join(path)).unwrap())).collect()
}

#[test]
fn runs_depend_neither_on_the_number_of_threads_nor_on_the_default_device() {
    let folder = tempfile::tempdir().unwrap();
    let reinforcement = [
        "algorithm.adv_estimator=gae",
        "actor_rollout_ref.actor.use_kl_loss=true",
        "actor_rollout_ref.actor.kl_loss_type=full",
        "actor_rollout_ref.actor.entropy_coeff=0.01",
        "actor_rollout_ref.rollout.calculate_log_probs=true",
        "trainer.total_training_steps=2",
        "trainer.save_freq=2",
    ];
    let supervised =
        ["data.train_batch_size=64", "trainer.total_training_steps=3", "trainer.save_freq=3", "trainer.logger=[file]"];
    let mut results = Vec::new();
    for (threads, workers) in [("1", "1"), ("2", "4"), ("3", "2")] {
        let rl = folder.path().join(format!("rl-{threads}"));
        let mut command = small_run(&rl, &reinforcement);
        succeed_with(command.arg(format!("reward.num_workers={workers}")), threads);
        let sft = folder.path().join(format!("sft-{threads}"));
        let mut command = trainer(&["sft", "--config", "arithmetic/first_sft.yaml"]);
        succeed_with(command.args(supervised).arg(format!("trainer.default_local_dir={}", sft.display())), threads);
        results.push([rl, sft].map(|run| (text(&run), weights(&run))));
    }
    let (one, more) = results.split_first().unwrap();
    assert!(one.iter().all(|(rows, weights)| !rows.is_empty() && !weights.is_empty()));
    for several in more {
        for ((rows, weights), (other_rows, other_weights)) in one.iter().zip(several) {
            assert_eq!(rows, other_rows);
            assert!(weights == other_weights, "the weights of {:?} differ", weights.keys());
        }
    }
}

/// Runs with this many threads, and with a default device that does not exist: burn fails as soon as a call uses it.
fn succeed_with(command: &mut std::process::Command, threads: &str) {
    command.env("RAYON_NUM_THREADS", threads).env("BURN_DEVICE", "none");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
}
