//! An error on one rank ends all of them, with one message that names the rank.

use std::fs;
use std::time::{Duration, Instant};

use crate::common::{small_run, succeed};
use crate::job::{Running, SOON, has_mpi, job, job_of, rank_variable};

/// A reward function that fails on rank 1 after the first step, and then writes a marker file.
const FAILS: &str = "import os

def compute_score(data_source, solution_str, ground_truth, extra_info=None, mark=None, since=None):
    if os.environ['RANK_VARIABLE'] == '1' and os.path.exists(since) and os.path.getsize(since) > 0:
        open(mark, 'w').write('x')
        raise ValueError('no score on this rank')
    return float(len(solution_str) % 2)
";

#[test]
fn a_reward_function_that_fails_on_one_rank_ends_all() {
    if !has_mpi() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let (rule, mark) = (folder.path().join("rule.py"), run.join("mark"));
    fs::write(&rule, FAILS.replace("RANK_VARIABLE", rank_variable())).unwrap();
    let mut command = small_run(&run, &["trainer.total_training_steps=1000", "trainer.total_epochs=1000"]);
    command.args(["trainer.test_freq=-1", "trainer.val_before_train=false", "reward.num_workers=1"]);
    command.arg(format!("custom_reward_function.path={}", rule.display()));
    command.arg(format!("+custom_reward_function.reward_kwargs.mark={}", mark.display()));
    command.arg(format!("+custom_reward_function.reward_kwargs.since={}", run.join("metrics.jsonl").display()));
    command.arg(format!("reward.pass_env=[{}]", rank_variable()));
    let mut running = Running::start(job(3, command), &run);
    running.wait_for("mark");
    let (code, message) = running.end(SOON);
    assert_eq!(code, Some(1), "{message}");
    assert_eq!(message.matches("ValueError: no score on this rank").count(), 1, "{message}");
    assert!(message.contains("rank 1: "), "{message}");
    assert_eq!(message.lines().filter(|line| line.starts_with("error:")).count(), 1, "{message}");
}

/// A reward function that takes longer on rank 1 than the other ranks wait.
const SLOW: &str = "import os, time

def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    time.sleep(0.5 if os.environ['RANK_VARIABLE'] == '1' else 0)
    return float(len(solution_str) % 2)
";

#[test]
fn a_slow_reward_function_is_waited_for() {
    if !has_mpi() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let rule = folder.path().join("rule.py");
    fs::write(&rule, SLOW.replace("RANK_VARIABLE", rank_variable())).unwrap();
    let mut command = small_run(&run, &["trainer.total_training_steps=1", "actor_rollout_ref.nccl_timeout=2"]);
    command.args(["trainer.test_freq=-1", "trainer.val_before_train=false", "reward.num_workers=1"]);
    command.arg(format!("custom_reward_function.path={}", rule.display()));
    command.arg(format!("reward.pass_env=[{}]", rank_variable()));
    let start = Instant::now();
    succeed(job(2, command));
    assert!(start.elapsed() > Duration::from_secs(4), "the function was not slow enough to prove anything");
}

#[test]
fn ranks_with_different_settings_do_not_begin() {
    if !has_mpi() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let program = |more: &[&str]| small_run(&run, more);
    let start = Instant::now();
    let job = job_of(&[(1, program(&["trainer.seed=1"])), (2, program(&["trainer.seed=2"]))]);
    let (code, message) = Running::start(job, &run).end(Duration::from_secs(10));
    assert_eq!(code, Some(2), "{message}");
    let lines: Vec<&str> = message.lines().filter(|line| line.starts_with("error:")).collect();
    assert!(lines.len() == 1 && lines[0].contains("configuration of rank 1, 2"), "{message}");
    assert!(!run.join("metrics.jsonl").exists(), "it has begun after {:?}", start.elapsed());

    // An error of one rank alone.
    let job = job_of(&[(1, program(&[])), (1, program(&["trainer.sed=1"]))]);
    let (code, message) = Running::start(job, &run).end(Duration::from_secs(10));
    assert_eq!(code, Some(2), "{message}");
    let lines: Vec<&str> = message.lines().filter(|line| line.starts_with("error:")).collect();
    assert!(lines.len() == 1 && lines[0].contains("rank 1") && lines[0].contains("trainer.sed"), "{message}");
}
