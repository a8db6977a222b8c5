//! A job that is stopped between two steps, or killed in any, resumes with any number of ranks, and its results are unchanged.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::common::{rows, small_run, succeed, text};
use crate::job::{Running, SOON, has_mpi, is_open_mpi, job, signal};

const STEPS: u64 = 8;
const OPTIONS: &[&str] = &[
    "trainer.total_training_steps=8",
    "trainer.save_freq=2",
    "trainer.test_freq=-1",
    "trainer.val_before_train=false",
    "trainer.gradient_slices=2",
];

fn weights(run: &Path) -> Vec<u8> {
    fs::read(run.join(format!("global_step_{STEPS}/actor/huggingface/model.safetensors"))).unwrap()
}

/// An undisturbed run, in one process.
fn undisturbed(folder: &Path) -> PathBuf {
    let run = folder.join("undisturbed");
    succeed(small_run(&run, OPTIONS));
    run
}

fn assert_same(run: &Path, whole: &Path) {
    assert_eq!(text(run), text(whole));
    assert!(weights(run) == weights(whole), "other weights");
}

#[test]
fn a_killed_process_ends_all_and_one_process_goes_on() {
    if !has_mpi() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let whole = undisturbed(folder.path());
    for rank in [0, 1] {
        let run = folder.path().join(format!("killed-{rank}"));
        let mut running = Running::start(job(2, small_run(&run, OPTIONS)), &run);
        running.wait_for("latest_checkpointed_iteration.txt");
        signal(running.rank(rank), "KILL");
        let (code, message) = running.end(SOON);
        assert!(code != Some(0) && (!is_open_mpi() || code == Some(137)), "{code:?}: {message}");
        assert!((rows(&run).len() as u64) < STEPS, "the process was killed too late to prove anything");
        succeed(small_run(&run, OPTIONS));
        assert_same(&run, &whole);
    }
}

#[test]
fn a_job_that_is_asked_to_stop_saves_and_goes_on_in_more_processes() {
    if !has_mpi() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let whole = undisturbed(folder.path());
    let run = folder.path().join("stopped");
    let mut running = Running::start(job(2, small_run(&run, OPTIONS)), &run);
    running.wait_for("metrics.jsonl");
    running.signal("USR1");
    let (code, message) = running.end(2 * SOON);
    assert_eq!(code, Some(3), "{message}");
    let step = rows(&run).len();
    assert!((step as u64) < STEPS, "the job was asked too late to prove anything");
    let stopped = format!("interrupted after step {step}; the same command resumes from");
    assert_eq!(message.matches(&stopped).count(), 1, "{message}");
    assert_eq!(fs::read_to_string(run.join("latest_checkpointed_iteration.txt")).unwrap(), step.to_string());
    succeed(job(3, small_run(&run, OPTIONS)));
    assert_same(&run, &whole);
}

/// A file-size limit on rank 0, the only writer, is handled like a full disk.
#[test]
fn a_full_disk_ends_all_and_leaves_the_last_checkpoint_whole() {
    if !has_mpi() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let whole = undisturbed(folder.path());
    let run = folder.path().join("full");
    let inner = small_run(&run, OPTIONS);
    // A process that ignores the signal of the limit gets an error instead. mpirun would set it back, so that each process
    // ignores it by itself.
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(inner.get_program()).args(inner.get_args());
    command.current_dir(inner.get_current_dir().unwrap());
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut running = Running::start(job(2, command), &run);
    running.wait_for("latest_checkpointed_iteration.txt");
    let mut limit = Command::new("prlimit");
    limit.args(["--fsize=400000", "--pid", &running.rank(0).to_string()]);
    assert!(limit.status().expect("prlimit of util-linux").success());
    let (code, message) = running.end(4 * SOON);
    assert_eq!(code, Some(1), "{message}");
    assert_eq!(message.matches("cannot save the checkpoint of step").count(), 1, "{message}");
    let saved = fs::read_to_string(run.join("latest_checkpointed_iteration.txt")).unwrap();
    assert!(run.join(format!("global_step_{saved}/manifest.json")).exists(), "{saved}");
    succeed(job(2, small_run(&run, OPTIONS)));
    assert_same(&run, &whole);
}

#[test]
fn a_process_that_hangs_is_named_and_ends_all() {
    if !has_mpi() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (rank, soon) in [(1, Duration::from_secs(3)), (0, Duration::from_secs(8))] {
        let run = folder.path().join(format!("hangs-{rank}"));
        let options = ["trainer.total_training_steps=1000", "trainer.total_epochs=1000", "actor_rollout_ref.nccl_timeout=3"];
        let mut running = Running::start(job(2, small_run(&run, &[OPTIONS, &options].concat())), &run);
        running.wait_for("metrics.jsonl");
        signal(running.rank(rank), "STOP");
        let (code, message) = running.end(soon + SOON);
        assert_eq!(code, Some(75), "{message}");
        let lines: Vec<&str> = message.lines().filter(|line| line.starts_with("error:")).collect();
        assert!(lines.len() == 1 && lines[0].contains(&format!("rank {rank}")), "{message}");
        assert!(lines[0].contains("exit code 75"), "{message}");
    }
}
