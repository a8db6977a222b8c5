//! Steps of earlier runs, made again: `trainer replay` and `trainer bisect`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use burnish::util::fs::files_under;
use serde_json::Value;

use crate::common::{of_task, small_run, succeed, trainer};

/// A run of four steps with checkpoints after 2 and 4.
const STEPS: &[&str] = &["trainer.total_training_steps=4", "trainer.save_freq=2", "trainer.test_freq=4", "trainer.logger=[file]"];

/// Recipes of reinforcement learning, as settings of a small run.
const REINFORCED: &[(&str, &[&str])] = &[
    ("grpo", &["algorithm.adv_estimator=grpo", "actor_rollout_ref.actor.optim.lr=1e-3"]),
    ("ppo", &["algorithm.adv_estimator=gae", "actor_rollout_ref.model.lora_rank=2", "trainer.metric_names=trl"]),
];

/// Stages, with their settings.
const STAGES: &[(&str, &[&str])] = &[("sft", &["data.train_batch_size=4"]), ("dpo", &["data.train_batch_size=4"])];

fn train(folder: &Path, name: &str) -> PathBuf {
    let run = folder.join(name);
    let mut command = match REINFORCED.iter().find(|(known, _)| *known == name) {
        Some((_, settings)) => small_run(&run, settings),
        None => {
            let (_, settings) = STAGES.iter().find(|(known, _)| *known == name).unwrap();
            let mut command = of_task(name);
            command.args(*settings).arg(format!("trainer.default_local_dir={}", run.display()));
            command
        }
    };
    command.args(STEPS).args(["trainer.val_before_train=false"].iter().filter(|_| !["sft", "dpo"].contains(&name)));
    succeed(command);
    run
}

fn replay(run: &Path, step: u64, more: &[&str]) -> Command {
    let mut command = trainer(&["replay", run.to_str().unwrap(), "--step", &step.to_string()]);
    command.args(more);
    command
}

fn rows(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
}

/// Every file of a folder with its contents.
fn contents(run: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<_> =
        files_under(run).unwrap().into_iter().map(|file| (file.clone(), fs::read(run.join(file)).unwrap())).collect();
    files.sort();
    files
}

fn assert_equal(run: &Path, steps: &[u64]) {
    let before = contents(run);
    for step in steps {
        let output = succeed(replay(run, *step, &["--json"]));
        let row = rows(&output).remove(0);
        assert_eq!((&row["equal"], &row["step"]), (&Value::Bool(true), &Value::from(*step)), "{}", row["differences"]);
        assert_eq!(row["from_step"], if *step > 2 { 2 } else { 0 });
        let samples = row["samples"].as_array().unwrap();
        let parts = |update: u64| -> f64 {
            let of = samples.iter().flat_map(|sample| sample["gradients"].as_array().unwrap());
            of.filter(|gradient| gradient["update"] == update).map(|gradient| gradient["share"].as_f64().unwrap_or(0.0)).sum()
        };
        assert!((parts(1) - 1.0).abs() < 1e-3 || parts(1) == 0.0, "the shares add up to {}", parts(1));
        assert!(row["layers"].as_array().is_some_and(|layers| layers.len() > 1));
        for text in samples.iter().flat_map(|sample| sample["texts"].as_array().unwrap()) {
            let tokens = text["tokens"].as_array().unwrap().len();
            let columns = text["updates"].as_array().into_iter().flatten().map(|columns| &columns["log_prob"]);
            assert!(columns.chain([&text["mask"]]).all(|column| column.as_array().unwrap().len() == tokens));
        }
    }
    assert_eq!(contents(run), before, "a replay only reads");
}

#[test]
fn replayed_steps_equal_the_record() {
    let folder = tempfile::tempdir().unwrap();
    assert_equal(&train(folder.path(), "ppo"), &[4]);
    assert_equal(&train(folder.path(), "sft"), &[2]);
    assert_equal(&train(folder.path(), "dpo"), &[3]);
}

/// A changed setting, a changed record and a wrong request are reported, and a search finds the first bad step.
#[test]
fn replays_of_one_run_tell_the_same_from_the_changed() {
    let folder = tempfile::tempdir().unwrap();
    let run = train(folder.path(), "grpo");
    assert_equal(&run, &[3]);
    let page = folder.path().join("step.html");
    let text = succeed(replay(&run, 4, &["--sample", "0", "--html", page.to_str().unwrap()]));
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    for part in ["step 4: equal to the record", "from global_step_2: 2 steps", "sample 0, row", "before update 1", "advantage"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert!(fs::read_to_string(page).unwrap().contains("\"equal\":true"));

    // The change begins at the step, so its batch is that of the record, and the next one is not.
    let set = ["--set", "actor_rollout_ref.actor.optim.lr=1e-2", "--until", "4", "--json"];
    let steps = rows(&succeed(replay(&run, 3, &set)));
    let names = |step: usize| steps[step]["differences"].to_string();
    assert!(names(0).contains("actor/lr") && !names(0).contains("critic/score/mean"), "{}", names(0));
    assert!(steps[1]["differences"].as_array().unwrap().len() > steps[0]["differences"].as_array().unwrap().len());

    let refused = |command: &mut Command, code: i32, part: &str| {
        let output = command.output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), message.contains(part)), (Some(code), true), "{part} is not in\n{message}");
    };
    refused(&mut replay(&run, 9, &[]), 2, "--step takes 1 to 4");
    refused(&mut replay(&run, 4, &["--limit", "0"]), 2, "--limit SECONDS raises it");
    for limit in ["NaN", "-1"] {
        refused(&mut replay(&run, 4, &[&format!("--limit={limit}")]), 2, &format!("--limit is {limit}"));
    }
    let record = run.join("conversations-7.record");
    std::fs::File::create(&record).unwrap().set_len(1 << 40).unwrap();
    refused(&mut replay(&run, 4, &[]), 2, "conversations-7.record has 1099511627776 bytes");
    std::fs::remove_file(&record).unwrap();

    let search = |metric: &str, bad: &str| {
        let output = succeed(trainer(&["bisect", run.to_str().unwrap(), "--metric", metric, "--bad", bad, "--json"]));
        rows(&output).remove(0)
    };
    let found = search("actor/lr", ">0");
    assert_eq!((&found["step"], &found["steps"][0]["equal"]), (&Value::from(1), &Value::Bool(true)), "{found}");
    let accuracy = "val-core/burnish/arithmetic/acc/mean@1";
    let found = search(accuracy, "<=1");
    assert_eq!((&found["step"], &found["replayed"]), (&Value::from(1), &Value::from(3)), "{}", found["step"]);

    let metrics = run.join("metrics.jsonl");
    let text = fs::read_to_string(&metrics).unwrap();
    let line = text.lines().nth(2).unwrap();
    let value = line.split("\"actor/grad_norm\":").nth(1).unwrap().split([',', '}']).next().unwrap();
    fs::write(&metrics, text.replace(&format!("\"actor/grad_norm\":{value}"), "\"actor/grad_norm\":7.5")).unwrap();
    refused(&mut replay(&run, 3, &[]), 1, "step 3 differs from the record: actor/grad_norm is 7.5 in the record and");
}

/// The record of a run of several processes has no setting for the slices whose gradients it summed, but their number.
#[test]
fn as_many_slices_are_summed_as_in_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let settings = ["trainer.gradient_slices=3", "trainer.total_training_steps=1", "trainer.save_freq=null"];
    succeed(small_run(&run, &[&settings[..], &["trainer.test_freq=-1", "trainer.val_before_train=false"]].concat()));
    let file = run.join("run.json");
    let mut info: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(info["gradient_slices"], 3);
    assert!(
        ["AVX-512", "AVX2", "NEON", "portable, without AVX2: slow"].iter().any(|kind| info["instructions"] == *kind),
        "{info}"
    );
    let key = info["config"].as_array_mut().unwrap().iter_mut().find(|one| one["key"] == "trainer.gradient_slices").unwrap();
    key["value"] = Value::Null;
    for (slices, is_equal) in [(Value::from(3), true), (Value::Null, false)] {
        info["gradient_slices"] = slices;
        info["instructions"] = "another kind".into();
        fs::write(&file, info.to_string()).unwrap();
        let output = replay(&run, 1, &["--json"]).output().unwrap();
        let messages = String::from_utf8_lossy(&output.stderr);
        assert_eq!(rows(&output)[0]["equal"], is_equal, "{messages}");
        assert_eq!(messages.contains("the gradients of 3 slices"), is_equal, "{messages}");
        assert!(messages.contains("the run computed with another kind"), "{messages}");
    }
}
