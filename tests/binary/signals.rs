//! Every signal whose default action ends a process, on every pipeline. After a signal that requests a stop, the run saves and
//! ends with exit code 3.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{of_task, small_run};

/// The signals that request a stop, and the signals after which no state is saved, with their numbers.
const ASK: [&str; 6] = ["HUP", "INT", "TERM", "USR1", "USR2", "XCPU"];
const END: [(&str, i32); 4] = [("QUIT", 3), ("ALRM", 14), ("VTALRM", 26), ("PROF", 27)];

const STEPS: &str = "trainer.total_training_steps=1000000";

fn kill(child: &Child, name: &str) {
    assert!(Command::new("kill").args([format!("-{name}"), child.id().to_string()]).status().unwrap().success());
}

/// Returns a run of each pipeline that would take days, in a folder.
fn pipelines(folder: &Path) -> Vec<(&'static str, Command)> {
    let stage = |name: &'static str, settings: &[&str]| {
        let mut command = of_task(name);
        command.args([STEPS, "data.val_files=null", "model.path=data/arithmetic/model", "trainer.logger=[file]"]);
        command.args(["data.train_batch_size=8", "trainer.save_freq=-1"]).args(settings);
        command.arg(format!("trainer.default_local_dir={}", folder.join(name).display()));
        (name, command)
    };
    let (rows, pairs) =
        ("data.train_files=data/arithmetic/train.parquet", "data.train_files=data/arithmetic/pairs/train.parquet");
    let rl = [STEPS, "trainer.save_freq=-1", "trainer.val_before_train=false", "trainer.test_freq=-1"];
    vec![
        ("rl", small_run(&folder.join("rl"), &rl)),
        stage("sft", &[rows]),
        stage("dpo", &[pairs]),
        stage("rm", &[pairs]),
        stage("distill", &[rows, "teacher.path=data/arithmetic/model"]),
    ]
}

/// The same command through a wrapper with the same exit status. It resets signals that the test process inherited as ignored.
fn through(words: &[&str], command: &Command) -> Command {
    let mut other = Command::new("env");
    other.arg("--default-signal").args(words).arg(command.get_program()).args(command.get_args());
    other.current_dir(command.get_current_dir().unwrap()).env("HF_HUB_OFFLINE", "1");
    other
}

/// Starts a run, and waits for its first steps.
fn started(words: &[&str], command: &Command, run: &Path) -> Child {
    let child = through(words, command).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    while fs::metadata(run.join("metrics.jsonl")).map_or(0, |file| file.len()) == 0 {
        assert!(Instant::now() < deadline, "{}: no step was done", run.display());
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

fn saves_and_ends(child: Child, run: &Path, label: &str) {
    let output = child.wait_with_output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{label}: {:?} {message}", output.status);
    assert!(message.contains("the same command resumes from"), "{label}: {message}");
    assert!(run.join("latest_checkpointed_iteration.txt").exists(), "{label}");
    let info: serde_json::Value = serde_json::from_slice(&fs::read(run.join("run.json")).unwrap()).unwrap();
    assert_eq!(info["state"], "interrupted", "{label}");
}

#[test]
fn every_pipeline_saves_at_every_signal_that_asks() {
    for (i, signal) in ASK.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        // All signals run the same code: each signal is tested with two pipelines, and every pipeline is tested.
        for (name, command) in pipelines(folder.path()).into_iter().enumerate().filter(|(j, _)| (i + j) % 5 < 2).map(|(_, p)| p) {
            let run = folder.path().join(name);
            let child = started(&[], &command, &run);
            kill(&child, signal);
            saves_and_ends(child, &run, &format!("{signal}, {name}"));
        }
    }
}

/// A closing terminal sends SIGHUP more than once, and a service manager sends SIGTERM after it.
#[test]
fn signals_that_come_together_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (_, command) = pipelines(folder.path()).swap_remove(0);
    let run = folder.path().join("rl");
    let child = started(&[], &command, &run);
    ["HUP", "HUP", "XCPU", "USR2", "TERM", "HUP"].iter().for_each(|signal| kill(&child, signal));
    saves_and_ends(child, &run, "together");
}

#[test]
fn what_is_ignored_stays_ignored_and_other_signals_end_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let (_, run) = pipelines(folder.path()).swap_remove(1);
    // Starts the program as nohup does.
    let nohup = ["sh", "-c", "trap '' HUP; exec \"$0\" \"$@\""];
    let folder = folder.path().join("sft");
    let mut child = started(&nohup, &run, &folder);
    kill(&child, "HUP");
    let rows = || fs::read_to_string(folder.join("metrics.jsonl")).unwrap().lines().count();
    let before = rows();
    while rows() < before + 5 {
        assert!(child.try_wait().unwrap().is_none(), "SIGHUP ended a run that ignores it");
        std::thread::sleep(Duration::from_millis(5));
    }
    kill(&child, "TERM");
    saves_and_ends(child, &folder, "after an ignored SIGHUP");

    for (signal, number) in END {
        let other = tempfile::tempdir().unwrap();
        let (_, command) = pipelines(other.path()).swap_remove(1);
        let child = started(&[], &command, &other.path().join("sft"));
        kill(&child, signal);
        assert_eq!(child.wait_with_output().unwrap().status.signal(), Some(number), "{signal}");
    }
}

/// A file that grows beyond `ulimit -f` is an error that names it, not a kill without a message.
#[test]
fn the_largest_size_of_a_file_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (_, run) = pipelines(folder.path()).swap_remove(1);
    let mut limited = through(&["sh", "-c", "ulimit -f 1000; exec \"$0\" \"$@\""], &run);
    limited.arg("trainer.total_training_steps=1");
    let output = limited.output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && message.contains("File too large"), "{:?} {message}", output.status);
}
