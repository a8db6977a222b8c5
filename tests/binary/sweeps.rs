//! `--multirun`: a sweep that is killed, interrupted and resumed, its jobs, and its report.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{SMALL, of_task, small_run, succeed, text, trainer};

const SETTINGS: &[&str] = &[
    "trainer.total_training_steps=2",
    "trainer.val_before_train=false",
    "trainer.test_freq=2",
    "trainer.save_freq=1",
    "trainer.experiment_name=s",
];
const SWEPT: &[&str] = &["actor_rollout_ref.actor.optim.lr=1e-4,1e-3", "trainer.seed=1..2"];
const JOBS: [&str; 4] = ["lr-1e-4_seed-1", "lr-1e-4_seed-2", "lr-1e-3_seed-1", "lr-1e-3_seed-2"];

fn sweep(folder: &Path, swept: &[&str]) -> Command {
    let mut command = of_task("");
    command.arg("-m").args(SMALL).args(SETTINGS).args(swept);
    command.arg(format!("hydra.sweep.dir={}", folder.display()));
    command
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(180);
    while !is_so() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Starts the sweep, and waits until a job has begun its record. Returns the sweep and the process id of the job.
fn started(folder: &Path, job: &str) -> (Child, String) {
    let child = sweep(folder, SWEPT).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    until(job, || jobs(folder).iter().any(|one| one["name"] == job && one["state"] == "running"));
    until(job, || folder.join(job).join("run.json").exists());
    let running = jobs(folder).into_iter().find(|one| one["name"] == job).unwrap();
    (child, running["process"].as_str().unwrap().split(' ').nth(1).unwrap().to_owned())
}

fn jobs(folder: &Path) -> Vec<Value> {
    let Ok(bytes) = fs::read(folder.join("sweep.json")) else { return vec![] };
    let record: Value = serde_json::from_slice(&bytes).expect("the record is whole at any time");
    record["jobs"].as_array().unwrap().clone()
}

fn message(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_sweep_killed_and_interrupted_resumes_to_the_same_runs() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("sweep");

    let (mut killed, job) = started(&folder, JOBS[0]);
    killed.kill().unwrap();
    killed.wait().unwrap();
    until("the job of a killed sweep ends", || !Path::new("/proc").join(&job).exists());
    assert!(!folder.join(JOBS[1]).exists(), "one job at a time");

    let (asked, job) = started(&folder, JOBS[1]);
    assert!(Command::new("kill").args(["-TERM", &asked.id().to_string()]).status().unwrap().success());
    let output = asked.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", message(&output));
    assert!(message(&output).contains("the same command resumes the sweep"), "{}", message(&output));
    assert!(!Path::new("/proc").join(&job).exists(), "a job outlives its sweep");

    let other = sweep(&folder, &["actor_rollout_ref.actor.optim.lr=1e-4,1e-3", "trainer.seed=1..3"]).output().unwrap();
    assert_eq!(other.status.code(), Some(2), "{}", message(&other));
    assert!(message(&other).contains("has another sweep") && message(&other).contains("sweep-2"), "{}", message(&other));
    let other = sweep(&folder, &[SWEPT, &["data.max_response_length=9"]].concat()).output().unwrap();
    assert!(message(&other).contains("settings that are not swept have changed"), "{}", message(&other));

    succeed(sweep(&folder, SWEPT));
    for (job, name) in jobs(&folder).iter().zip(JOBS) {
        assert_eq!((&job["name"], &job["state"]), (&Value::from(name), &Value::from("finished")));
    }
    let alone = dir.path().join("alone");
    succeed(small_run(&alone, &[SETTINGS, &["actor_rollout_ref.actor.optim.lr=1e-3", "trainer.seed=2"]].concat()));
    assert_eq!(text(&folder.join(JOBS[3])), text(&alone));

    let again = succeed(sweep(&folder, SWEPT));
    assert!(
        message(&again).contains("4 of 4 jobs have finished") && !message(&again).contains(" starts\n"),
        "{}",
        message(&again)
    );
    reported(&folder);
}

/// Looks at the list of runs, the report, and its files.
fn reported(folder: &Path) {
    let words = ["runs", "ls", folder.to_str().unwrap()];
    let rows = succeed(trainer(&[&words[..], &["--json"]].concat()));
    let rows: Vec<Value> =
        String::from_utf8_lossy(&rows.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 4);
    assert!(rows.iter().all(|row| row["sweep"] == folder.to_str().unwrap() && row["state"] == "finished"), "{rows:?}");
    let shown = succeed(trainer(&words)).stdout;
    let shown = String::from_utf8_lossy(&shown);
    assert!(shown.contains(" ± ") && shown.contains("lr=1e-3") && shown.contains("2 finished"), "{shown}");

    let files = ["table.csv", "rows.parquet"].map(|name| folder.join(name));
    let [table, rows] = files.each_ref().map(|file| file.to_str().unwrap());
    succeed(trainer(&["report", folder.to_str().unwrap(), "--table", table, "--rows", rows]));
    let table = fs::read_to_string(table).unwrap();
    assert_eq!(table.lines().count(), 3, "{table}");
    assert!(table.starts_with("actor_rollout_ref.actor.optim.lr,metric,count,mean,sd,min,max,jobs\n"), "{table}");
    assert!(table.lines().skip(1).all(|line| line.split(',').nth(2) == Some("2")), "{table}");
    assert!(fs::read(rows).unwrap().starts_with(b"PAR1"));
    let page = fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(JOBS.iter().all(|job| page.contains(job)) && !page.contains("{{"));
}

#[test]
fn a_failed_job_stops_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = of_task("sft");
    command.args(["--multirun", "--jobs", "2", "data.train_files=no/such.parquet,data/arithmetic/train.parquet"]);
    command.args(["trainer.total_training_steps=1", "data.train_batch_size=8", "data.val_files=null", "trainer.logger=[file]"]);
    command.arg(format!("trainer.default_local_dir={}", dir.path().join("run").display()));
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", message(&output));
    assert!(message(&output).contains("1 of 2 jobs failed: train_files-no_such.parquet"), "{}", message(&output));
    assert!(message(&output).contains("error: ") && message(&output).contains("console.log"), "{}", message(&output));
    let folder = dir.path().join("run-sweep");
    let states: Vec<Value> = jobs(&folder).iter().map(|job| job["state"].clone()).collect();
    assert_eq!(states, ["failed", "finished"]);
    assert!(folder.join("train_files-data_arithmetic_train.parquet/global_step_1").is_dir());
}
