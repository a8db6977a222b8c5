//! Alarms of real runs, and their consequence.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::common::{of_task, rows, small_run, succeed, text, trainer};

/// Responses of one digit: all are cut and wrong.
fn ill(run: &Path, more: &[&str]) -> Command {
    let mut command = small_run(run, &["trainer.total_training_steps=12", "data.max_response_length=1", "trainer.save_freq=-1"]);
    command.args(["trainer.val_before_train=false", "trainer.test_freq=-1", "trainer.save_best=false"]).args(more);
    command
}

fn info(run: &Path) -> Value {
    serde_json::from_slice(&fs::read(run.join("run.json")).unwrap()).unwrap()
}

/// The alarms of a record, as step and name.
fn alarms(run: &Path) -> Vec<(u64, String)> {
    let info = info(run);
    let alarms = info["alarms"].as_array().unwrap().iter();
    alarms.map(|alarm| (alarm["step"].as_u64().unwrap(), alarm["name"].as_str().unwrap().to_owned())).collect()
}

#[test]
fn a_run_that_stops_at_each_alarm_is_the_uninterrupted_run() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, parts) = (folder.path().join("whole"), folder.path().join("parts"));
    succeed(ill(&whole, &[]));
    let expected = [(3, "responses cut"), (5, "constant reward"), (10, "no signal")].map(|(step, name)| (step, name.to_owned()));
    assert_eq!(alarms(&whole), expected);
    for (step, data) in rows(&whole) {
        let metrics: Vec<&String> = data.keys().filter(|name| name.starts_with("alarm/")).collect();
        let raised = expected.iter().filter(|(at, _)| *at == step).map(|(_, name)| format!("alarm/{}", name.replace(' ', "_")));
        assert_eq!(metrics, raised.collect::<Vec<_>>().iter().collect::<Vec<_>>(), "step {step}");
    }

    for (step, name) in &expected {
        let output = ill(&parts, &["trainer.on_alarm=stop"]).output().unwrap();
        let messages = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{messages}");
        for part in [format!("alarm at step {step}: {name}: "), format!("stopped after step {step} by an alarm")] {
            assert!(messages.contains(&part), "{part}: {messages}");
        }
        assert!(parts.join(format!("global_step_{step}")).is_dir());
        assert_eq!(info(&parts)["state"], "interrupted");
    }
    succeed(ill(&parts, &["trainer.on_alarm=stop"]));
    assert_eq!((text(&parts), alarms(&parts)), (text(&whole), expected.to_vec()));
    assert_eq!(info(&parts)["alarms"], info(&whole)["alarms"]);

    // Readers of the record show them, and the doctor finds them again in the rows.
    let output = |args: &[&str]| String::from_utf8(trainer(args).output().unwrap().stdout).unwrap();
    let at = whole.to_str().unwrap();
    assert!(output(&["runs", "ls", folder.path().to_str().unwrap()]).contains("3 alarms"));
    assert!(output(&["runs", "show", at]).contains("responses cut at step 3: 100 % of responses are cut"));
    assert!(output(&["doctor", at]).contains("alarms while the run trains: responses cut at step 3, constant reward at step 5"));
    let found = output(&["doctor", at, "--json"]);
    let found: Vec<Value> = found.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let step = |name: &str| found.iter().find(|row| row["check"] == name).unwrap()["alarm"].clone();
    assert_eq!((step("no signal"), step("KL")), (json!(10), Value::Null));
}

#[test]
fn an_alarm_saves_its_step_and_the_run_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let output = succeed(ill(&run, &["trainer.on_alarm=save", "trainer.total_training_steps=6"]));
    let messages = String::from_utf8_lossy(&output.stderr);
    for step in [3, 5] {
        let saved = run.join(format!("global_step_{step}"));
        assert!(saved.is_dir() && messages.contains(&format!("(trainer.on_alarm=save): {}", saved.display())), "{messages}");
    }
    assert_eq!(info(&run)["state"], "finished");
}

/// A stage shares the loop: updates that are left out raise its alarm.
#[test]
fn a_stage_has_the_alarms_that_apply() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("dpo");
    let mut command = of_task("dpo");
    command.args(["trainer.total_training_steps=3", "data.val_files=null", "data.train_batch_size=8", "trainer.logger=[file]"]);
    command.args(["algorithm.beta=1e38", "trainer.on_nonfinite=skip", "trainer.on_alarm=stop", "trainer.save_freq=null"]);
    let output = command.arg(format!("trainer.default_local_dir={}", run.display())).output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{messages}");
    assert!(messages.contains("alarm at step 1: NaN: ") && run.join("global_step_1").is_dir(), "{messages}");
}
