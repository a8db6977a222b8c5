//! The record of a run: on the console, in its log, and in the files about its state and end.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{small_run, succeed, trainer};

const STEPS: &[&str] = &["trainer.total_training_steps=4", "trainer.val_before_train=false", "trainer.log_completions=0"];

fn json(run: &Path, name: &str) -> Value {
    serde_json::from_slice(&fs::read(run.join(name)).unwrap()).unwrap()
}

#[test]
fn a_run_says_what_it_is_and_how_it_ended() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let mut command = small_run(&run, STEPS);
    command.args(["trainer.logger=console", "algorithm.adv_estimator=grpo"]);
    let output = succeed(command);
    let printed = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.len(), 6, "four steps and two validations:\n{printed}");
    assert!(lines[0].starts_with("step 1/4  reward 0.") && lines[0].ends_with(" left"), "{printed}");
    assert!(lines[3].starts_with("step 3/4  val-core/burnish/arithmetic/acc/mean@1 0."), "{printed}");

    let info = json(&run, "run.json");
    assert_eq!((&info["state"], &info["step"], &info["total_steps"]), (&"finished".into(), &4.into(), &4.into()));
    assert_eq!((&info["kind"], &info["device"], info["id"].as_str().map(str::len)), (&"ppo".into(), &"cpu".into(), Some(8)));
    assert_eq!(info["best"]["metric"], "val-core/burnish/arithmetic/acc/mean@1");
    let setting = |key: &str| info["config"].as_array().unwrap().iter().find(|one| one["key"] == key).unwrap().clone();
    assert_eq!(setting("algorithm.adv_estimator")["value"], "grpo");
    assert!(setting("algorithm.adv_estimator")["from"].as_str().unwrap().contains("algorithm.adv_estimator=grpo"));
    assert!(setting("algorithm.gamma")["from"].as_str().unwrap().contains(".yaml:"));
    // The metrics file exists although it was not asked for, because the report reads it.
    assert_eq!(fs::read_to_string(run.join("metrics.jsonl")).unwrap().lines().count(), 4);

    // Commands that inspect runs repeat it.
    let at = run.to_str().unwrap();
    let listed = succeed(trainer(&["runs", "ls", folder.path().to_str().unwrap(), "--json"])).stdout;
    let listed: Value = serde_json::from_slice(&listed).unwrap();
    assert_eq!((&listed["state"], &listed["step"], &listed["resumable"]), (&"finished".into(), &4.into(), &false.into()));
    assert_eq!(listed["best"], info["best"]);
    let printed = String::from_utf8(succeed(trainer(&["runs", "show", at])).stdout).unwrap();
    assert!(printed.contains("finished") && printed.contains("algorithm.adv_estimator=grpo"), "{printed}");
    succeed(trainer(&["report", at]));
    let report = fs::read_to_string(run.join("report.html")).unwrap();
    assert!(report.contains("\"actor/grad_norm\":[") && !report.contains("{{DATA}}"), "{}", report.len());

    // All messages on standard error are in the log.
    let (messages, log) = (String::from_utf8(output.stderr).unwrap(), fs::read_to_string(run.join("trainer.log")).unwrap());
    assert!(!messages.contains("signal") && !messages.contains("taught"), "{messages}");
    for word in ["each step: ", "memory: about ", "finished 4 steps in ", "next: trainer report "] {
        assert!(messages.contains(word) && log.contains(word), "{word}\n{messages}\n{log}");
    }
}

/// Responses of one digit are never right: all responses have the same score, and nothing is learned.
#[test]
fn a_run_without_a_signal_says_so_once_and_at_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let mut command = small_run(&run, &["trainer.total_training_steps=12", "trainer.metric_names=trl", "trainer.save_freq=12"]);
    command.args(["data.max_response_length=1", "trainer.val_before_train=false", "trainer.test_freq=-1"]);
    let messages = String::from_utf8(succeed(command).stderr).unwrap();
    let same = "since step 1 all responses to a prompt have the same score, namely 0: every advantage is 0";
    for once in ["alarm at step 5: constant reward: all responses of steps 1 to 5 got the score 0. Read", "alarm at step 10: "] {
        assert_eq!(messages.matches(once).count(), 1, "{once}: {messages}");
    }
    assert!(messages.contains(&format!("alarm at step 10: no signal: {same}. Read")), "{messages}");
    assert!(messages.contains(&format!("no signal: {same}; ")), "{messages}");
    assert!(messages.contains("next: trainer report") && !messages.contains("trainer export"), "{messages}");
    let text = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let row: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!((&row["data"]["frac_reward_zero_std"], &row["data"]["reward_std"]), (&1.0.into(), &0.0.into()), "{row}");
    let info = json(&run, "run.json");
    assert_eq!((&info["state"], &info["no_signal"]), (&"finished".into(), &same.into()));
}

#[test]
fn a_command_that_finds_nothing_to_train_leaves_the_record_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let (rl, sft) = (folder.path().join("rl"), folder.path().join("sft"));
    let supervised = |more: &str| {
        let mut command =
            trainer(&["sft", "--config", "arithmetic/first_sft.yaml", "trainer.total_training_steps=2", "data.val_files=null"]);
        command.args(["data.train_batch_size=32", "data.micro_batch_size_per_gpu=16", "trainer.logger=[file]", more]);
        command.arg(format!("trainer.default_local_dir={}", sft.display()));
        command
    };
    let reinforced = |more: &str| small_run(&rl, &[STEPS, &["trainer.save_freq=4", more]].concat());
    type Command<'a> = &'a dyn Fn(&str) -> std::process::Command;
    let commands: [(&Path, Command, &str); 2] =
        [(&rl, &reinforced, "algorithm.adv_estimator=grpo"), (&sft, &supervised, "optim.lr=0.5")];
    for (run, command, change) in commands {
        succeed(command("trainer.seed=1"));
        let files = ["run.json", "metrics.jsonl", "trainer.log", "samples.jsonl"].map(|name| run.join(name));
        let record = || files.each_ref().map(|file| fs::read(file).ok());
        let before = record();
        let messages = String::from_utf8(succeed(command("trainer.seed=1")).stderr).unwrap();
        assert!(messages.contains("steps are done, nothing is left to train"), "{messages}");
        let messages = String::from_utf8(succeed(command(change)).stderr).unwrap();
        assert!(messages.contains("stays unchanged: this run is in"), "{messages}");
        assert!(record() == before, "{change} rewrote the record of {}", run.display());
        // A run that stopped between its last checkpoint and its end counts as finished.
        let mut info = json(run, "run.json");
        info["state"] = "running".into();
        fs::write(run.join("run.json"), info.to_string()).unwrap();
        succeed(command("trainer.seed=1"));
        assert_eq!(json(run, "run.json")["state"], "finished");
        assert_eq!(json(run, "run.json")["config"], info["config"], "{change}");
    }
}

#[test]
fn a_failure_leaves_its_error_and_phase() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = small_run(folder.path(), STEPS);
    command.arg("custom_reward_function.path=tests/data/rewards/misbehaves.py");
    command.args(["+custom_reward_function.reward_kwargs.does=raises", "+custom_reward_function.reward_kwargs.since=/"]);
    assert_eq!(command.output().unwrap().status.code(), Some(1));
    let info = json(folder.path(), "run.json");
    assert_eq!((&info["state"], &info["step"], &info["phase"]), (&"failed".into(), &0.into(), &"reward".into()), "{info}");
    assert!(info["error"].as_str().unwrap().contains("KeyError: 'missing key'"));
    let log = fs::read_to_string(folder.path().join("trainer.log")).unwrap();
    assert!(log.contains("\nerror: step 1: scoring the response"), "{log}");
}

#[test]
fn a_run_that_is_killed_leaves_its_phase_and_keeps_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        let mut command = small_run(folder.path(), STEPS);
        command.arg("trainer.save_freq=1");
        command
    };
    let mut child = start().spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    while !folder.path().join("latest_checkpointed_iteration.txt").exists() {
        assert!(Instant::now() < deadline, "no checkpoint");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let (before, phase) = (json(folder.path(), "run.json"), json(folder.path(), "phase.json"));
    assert_eq!(before["state"], "running");
    assert!(phase["step"].as_u64() >= Some(1) && phase["phase"].is_string(), "{phase}");
    succeed(start());
    let after = json(folder.path(), "run.json");
    assert_eq!((&after["id"], &after["started"]), (&before["id"], &before["started"]));
    assert_eq!((after["resumed"].as_array().map(Vec::len), &after["state"]), (Some(1), &"finished".into()));
    let log = fs::read_to_string(folder.path().join("trainer.log")).unwrap();
    assert_eq!(log.matches("each step: ").count(), 2, "both processes write the log:\n{log}");

    // The time between the two processes does not count as time of the run.
    let number = |info: &Value, key: &str| info[key].as_f64().unwrap_or_else(|| panic!("{key}: {info}"));
    assert_eq!(number(&after, "worked_before"), number(&phase, "time") - number(&before, "started"));
    let took = number(&after, "worked_before") + number(&after, "ended") - number(&after, "process_started");
    let listed = succeed(trainer(&["runs", "ls", folder.path().to_str().unwrap(), "--json"])).stdout;
    let listed: Value = serde_json::from_slice(&listed).unwrap();
    assert_eq!((number(&listed, "duration_s"), number(&listed, "worked")), (took, took));
}

/// The same holds if the name of the working folder is not valid UTF-8, and the metrics are stored elsewhere.
#[cfg(target_os = "linux")]
#[test]
fn a_run_is_told_of_from_elsewhere() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().join(OsString::from_vec(b"a \xff'b".to_vec()));
    fs::create_dir(&here).unwrap();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/arithmetic");
    let mut command = small_run(Path::new("my run"), STEPS);
    command.args(["trainer.total_training_steps=1", "trainer.save_freq=1"]);
    for (key, path) in
        [("data.train_files", "train.parquet"), ("data.val_files", "test.parquet"), ("actor_rollout_ref.model.path", "model")]
    {
        command.arg(format!("{key}={}", data.join(path).display()));
    }
    let output = succeed({
        command.current_dir(&here).env("VERL_FILE_LOGGER_ROOT", "logs");
        command
    });
    let message = String::from_utf8_lossy(&output.stderr);
    for command in ["trainer report 'my run'", "trainer export 'my run/global_step_1' --output FOLDER"] {
        assert!(message.contains(&format!("next: {command}\n")), "{message}");
    }
    let run = here.join("my run");
    let tell = |args: &[&str]| {
        let mut command = trainer(args);
        command.arg(&run);
        String::from_utf8(succeed(command).stdout).unwrap()
    };
    let shown = tell(&["runs", "show"]);
    assert!(shown.contains("\nstate        finished\n") && shown.contains("\nmetrics of step 1\n"), "{shown}");
    assert!(tell(&["runs", "ls"]).contains("finished"), "{shown}");
    tell(&["report"]);
    assert!(fs::read_to_string(run.join("report.html")).unwrap().contains("\"actor/grad_norm\":["));

    // Without these files the rest is shown, with a message that they are missing.
    fs::remove_dir_all(here.join("logs")).unwrap();
    let mut report = trainer(&["report"]);
    report.arg(&run);
    let message = succeed(report).stderr;
    assert!(String::from_utf8_lossy(&message).contains("no metrics: "), "{}", String::from_utf8_lossy(&message));
}
