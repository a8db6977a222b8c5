//! The reaction of a run to signals, a full disk, damaged files, changed settings, and values that are not finite.
//! `scripts/fault-injection` injects a fault into every system call.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{rows, small_run, succeed, text, trainer};

const TRACKER: &str = "latest_checkpointed_iteration.txt";
/// Three steps, each saved.
const SAVED: &[&str] =
    &["trainer.total_training_steps=3", "trainer.save_freq=1", "trainer.test_freq=1", "trainer.val_before_train=false"];

fn weights(run: &Path, step: u64) -> PathBuf {
    run.join(format!("global_step_{step}/actor/huggingface/model.safetensors"))
}

/// An undisturbed run with [`SAVED`] settings.
fn undisturbed(folder: &Path) -> PathBuf {
    let run = folder.join("undisturbed");
    succeed(small_run(&run, SAVED));
    run
}

fn assert_same(run: &Path, whole: &Path, step: u64, label: &str) {
    assert_eq!(text(run), text(whole), "{label}");
    let samples = |run: &Path| fs::read_to_string(run.join("samples.jsonl")).unwrap();
    assert_eq!(samples(run), samples(whole), "{label}");
    assert!(fs::read(weights(run, step)).unwrap() == fs::read(weights(whole, step)).unwrap(), "{label}: other weights");
}

/// Returns the error message of a run that fails with this exit code; there must be exactly one.
fn fails(mut command: Command, code: i32) -> String {
    let output = command.output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{message}");
    assert_eq!(message.lines().filter(|line| line.starts_with("error:")).count(), 1, "{message}");
    message
}

#[cfg(target_os = "linux")]
fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([format!("-{name}"), child.id().to_string()]).status().unwrap().success());
}

fn wait_for(path: &Path) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !path.exists() {
        assert!(Instant::now() < deadline, "{} did not appear", path.display());
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until the first row is written and training is in progress.
fn wait_for_rows(run: &Path) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while fs::metadata(run.join("metrics.jsonl")).map_or(0, |file| file.len()) == 0 {
        assert!(Instant::now() < deadline, "no step was done");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_run_that_is_asked_to_stop_saves_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let options = ["trainer.total_training_steps=12", "trainer.save_freq=50", "trainer.val_before_train=false"];
    let (whole, stopped) = (folder.path().join("whole"), folder.path().join("stopped"));
    succeed(small_run(&whole, &options));
    let start = || small_run(&stopped, &options).stderr(Stdio::piped()).spawn().unwrap();
    let child = start();
    wait_for_rows(&stopped);
    signal(&child, "TERM");
    let output = child.wait_with_output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{message}");
    let step = rows(&stopped).len();
    assert!(step < 12, "the run was asked too late to prove anything");
    assert!(message.contains(&format!("interrupted after step {step}; the same command resumes from")), "{message}");
    assert_eq!(fs::read_to_string(stopped.join(TRACKER)).unwrap(), step.to_string());
    succeed(small_run(&stopped, &options));
    assert_same(&stopped, &whole, 12, "resumed");

    // A run without periodic saves still saves its state when it is interrupted, and nothing else.
    let bare = folder.path().join("bare");
    let options = ["trainer.total_training_steps=12", "trainer.save_freq=-1", "trainer.val_before_train=false"];
    let child = small_run(&bare, &options).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_rows(&bare);
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{message}");
    let step = rows(&bare).len();
    assert!(0 < step && step < 12 && message.contains("; the same command resumes from"), "after {step} steps: {message}");
    let info: serde_json::Value = serde_json::from_slice(&fs::read(bare.join("run.json")).unwrap()).unwrap();
    assert_eq!((&info["state"], &info["step"]), (&"interrupted".into(), &step.into()));
    succeed(small_run(&bare, &options));
    assert_eq!(text(&bare), text(&whole));
    // The final state is saved too, because otherwise the same command would repeat the steps after the interruption.
    assert!(weights(&bare, step as u64).exists() && weights(&bare, 12).exists());
    let again = String::from_utf8(succeed(small_run(&bare, &options)).stderr).unwrap();
    assert!(again.contains("all 12 steps are done"), "{again}");
}

#[test]
fn damage_costs_one_checkpoint_and_no_correctness() {
    let folder = tempfile::tempdir().unwrap();
    let whole = undisturbed(folder.path());
    let run = folder.path().join("run");
    succeed(small_run(&run, &[SAVED, &["trainer.total_training_steps=2"]].concat()));
    let mut bytes = fs::read(weights(&run, 2)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    fs::write(weights(&run, 2), bytes).unwrap();
    let resumed = succeed(small_run(&run, SAVED));
    let message = String::from_utf8_lossy(&resumed.stderr);
    assert!(message.contains("model.safetensors is damaged") && message.contains("resuming from"), "{message}");
    assert_same(&run, &whole, 3, "after damage");

    for step in 1..=3 {
        fs::remove_file(run.join(format!("global_step_{step}/data.json"))).unwrap();
    }
    let message = fails(small_run(&run, SAVED), 2);
    assert!(message.contains("no checkpoint in") && message.contains("global_step_3/data.json is missing"), "{message}");
}

#[test]
fn settings_may_change_where_the_checkpoint_still_means_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let run = undisturbed(folder.path());
    // Without the checkpoint, other settings mean a new run.
    let from = format!("trainer.resume_from_path={}", run.join("global_step_3").display());
    let resume = ["trainer.total_training_steps=4", "trainer.resume_mode=resume_path", &from];
    let go_on = |more: &[&str]| small_run(&run, &[SAVED, &resume, more].concat());
    let message = fails(go_on(&["trainer.seed=2", "data.train_batch_size=16"]), 2);
    for part in ["trainer.seed: 1 -> 2", "data.train_batch_size: 8 -> 16", "load_contents", "resume_mode=disable"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    let filtered = ["algorithm.filter_groups.enable=true", "algorithm.filter_groups.metric=acc", "data.gen_batch_size=4"];
    let lr = ["actor_rollout_ref.actor.optim.lr=1e-3", "trainer.test_freq=2"];
    let output = succeed(go_on(&[&lr[..], &filtered].concat()));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("actor_rollout_ref.actor.optim.lr: 0.0004 -> 0.001"), "{message}");
    assert!(message.contains("the run ends at step 4 instead of 3, and so does the schedule"), "{message}");
    assert!(!message.contains("test_freq"), "{message}");
    // Three steps of 8 prompts, and then batches of 4 that continue after them.
    let drawn = |step: u64| -> u64 {
        let data = fs::read(run.join(format!("global_step_{step}/data.json"))).unwrap();
        serde_json::from_slice::<serde_json::Value>(&data).unwrap()["drawn"].as_u64().unwrap()
    };
    let generated = rows(&run)[3].1["train/num_gen_batches"].as_f64().unwrap() as u64;
    assert_eq!((drawn(3), drawn(4)), (24, 24 + 4 * generated));
}

#[test]
fn a_full_disk_leaves_the_last_checkpoint_whole() {
    let folder = tempfile::tempdir().unwrap();
    let whole = undisturbed(folder.path());
    let run = folder.path().join("run");
    succeed(small_run(&run, &[SAVED, &["trainer.total_training_steps=1"]].concat()));
    let before = fs::read(weights(&run, 1)).unwrap();
    // Files can have 1,000 blocks of 512 or 1,024 bytes, less than the weights.
    let inner = small_run(&run, SAVED);
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 1000; exec \"$0\" \"$@\""]).arg(inner.get_program()).args(inner.get_args());
    command.current_dir(inner.get_current_dir().unwrap());
    let message = fails(command, 1);
    for part in ["cannot save the checkpoint of step 2", "a checkpoint takes about", "model.safetensors"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    assert!(fs::read(weights(&run, 1)).unwrap() == before && !run.join("global_step_2").exists());
    let left: Vec<_> = fs::read_dir(&run).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!left.iter().any(|name| name.starts_with(".tmp-")), "{left:?}");
    succeed(small_run(&run, SAVED));
    assert_same(&run, &whole, 3, "after a full disk");
}

#[test]
fn the_best_checkpoint_stays_and_is_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let metric = "val-core/burnish/arithmetic/acc/mean@1";
    let of = |metric: &str| format!("trainer.metric_for_best_model={metric}");
    let best = of(metric);
    // Smaller is better for this metric, so the first step is the best: an untrained model solves nothing, and an equal value
    // does not replace the best.
    let options = |steps: &'static str| {
        let keep = ["trainer.test_freq=1", "trainer.greater_is_better=false", "trainer.max_actor_ckpt_to_keep=1"];
        [SAVED, &keep, &[steps]].concat()
    };
    let run = folder.path().join("run");
    for steps in ["trainer.total_training_steps=3", "trainer.total_training_steps=5"] {
        let mut command = small_run(&run, &options(steps));
        command.arg(&best);
        succeed(command);
    }
    let values: Vec<f64> = rows(&run).iter().map(|(_, row)| row[metric].as_f64().unwrap()).collect();
    let min = values.iter().copied().fold(f64::INFINITY, f64::min);
    let expected = 1 + values.iter().position(|value| *value == min).unwrap();
    assert_eq!(fs::read_to_string(run.join("best_checkpointed_iteration.txt")).unwrap(), expected.to_string());
    let kept = [1, 2, 3, 4, 5].map(|step| run.join(format!("global_step_{step}")).exists());
    assert_eq!(kept, [1, 2, 3, 4, 5].map(|step| step == expected || step == 5), "{values:?}");

    let output = folder.path().join("best");
    let export = |run: &Path| trainer(&["export", run.to_str().unwrap(), "--best", "--output", output.to_str().unwrap()]);
    succeed(export(&run));
    let weights = |folder: &Path| fs::read(folder.join("model.safetensors")).unwrap();
    assert!(weights(&output) == weights(&run.join(format!("global_step_{expected}/actor/huggingface"))));
    assert!(fails(export(folder.path()), 2).contains("names no best checkpoint"));

    // If validation measures another metric, the earlier best value is not comparable.
    for (steps, change, messages) in [
        ("trainer.total_training_steps=6", "data.val_max_samples=16", "the validation prompts have changed"),
        ("trainer.total_training_steps=7", "actor_rollout_ref.rollout.val_kwargs.n=2", "val_kwargs.n: 1 -> 2"),
    ] {
        let mut command = small_run(&run, &options(steps));
        let sampled =
            ["actor_rollout_ref.rollout.val_kwargs.do_sample=true", "actor_rollout_ref.rollout.val_kwargs.temperature=1"];
        let metric = if steps.ends_with('6') { best.clone() } else { of("val-core/burnish/arithmetic/acc/mean@2") };
        command.args([&metric, "data.val_max_samples=16", change]);
        if steps.ends_with('7') {
            command.args(sampled);
        }
        let message = String::from_utf8(succeed(command).stderr).unwrap();
        assert!(message.contains("validation has changed: ") && message.contains(messages), "{message}");
        let step = &steps[steps.len() - 1..];
        assert_eq!(fs::read_to_string(run.join("best_checkpointed_iteration.txt")).unwrap(), step);
    }

    let mut command = small_run(&folder.path().join("wrong"), &options("trainer.total_training_steps=3"));
    command.arg(of("val-core/burnish/arithmetic/acc/mean@2"));
    let message = fails(command, 1);
    assert!(message.contains(&format!("Did you mean \"{metric}\"?")), "{message}");
}

#[test]
fn numbers_that_are_not_finite_are_named_and_dumped_or_left_out() {
    let folder = tempfile::tempdir().unwrap();
    // A weight beyond f32 makes the score of every correct response infinite, and leaves that of a wrong one at 0.
    let infinite = ["trainer.total_training_steps=2", "trainer.val_before_train=false", "reward_model.reward_weights=[1e300]"];
    let run = folder.path().join("error");
    let message = fails(small_run(&run, &infinite), 1);
    for part in ["step 1: reward: the score inf", "to row", "nonfinite/step_1.jsonl", "on_nonfinite=skip"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    let dump = fs::read_to_string(run.join("nonfinite/step_1.jsonl")).unwrap();
    let row: serde_json::Value = serde_json::from_str(dump.lines().next().unwrap()).unwrap();
    assert!(row["prompt_ids"].is_array() && row["response_ids"].is_array(), "{row}");

    let run = folder.path().join("skip");
    let mut command = small_run(&run, &infinite);
    command.arg("trainer.on_nonfinite=skip");
    succeed(command);
    let last = &rows(&run)[1].1;
    assert!(last["reward/nonfinite/mean"].as_f64().unwrap() > 0.0, "{last:?}");
    assert_eq!(last["actor/skipped_updates"], 0.0);
}

#[test]
fn two_runs_do_not_share_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let long = ["trainer.total_training_steps=1000", "trainer.val_before_train=false", "trainer.test_freq=-1"];
    let mut first = small_run(&run, &long).spawn().unwrap();
    wait_for(&run.join("metrics.jsonl"));
    let message = fails(small_run(&run, SAVED), 2);
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(message.contains("another process is training in"), "{message}");
    // The lock was released when its process ended.
    succeed(small_run(&run, &["trainer.total_training_steps=1", "trainer.val_before_train=false"]));
}

#[cfg(target_os = "linux")]
#[test]
fn supervised_training_stops_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let sft = |name: &str| {
        let mut command = trainer(&["sft", "--config", "arithmetic/first_sft.yaml", "trainer.total_training_steps=12"]);
        command.args(["data.train_batch_size=32", "data.micro_batch_size_per_gpu=16", "trainer.logger=[file]"]);
        command.args(["data.val_files=null", "trainer.save_freq=-1"]);
        command.arg(format!("trainer.default_local_dir={}", folder.path().join(name).display()));
        command
    };
    let (whole, stopped) = (folder.path().join("whole"), folder.path().join("stopped"));
    succeed(sft("whole"));
    let mut child = sft("stopped").spawn().unwrap();
    wait_for(&stopped.join("metrics.jsonl"));
    std::thread::sleep(Duration::from_millis(50));
    signal(&child, "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(3));
    assert!(rows(&stopped).len() < 12, "the run was asked too late to prove anything");
    succeed(sft("stopped"));
    assert_eq!(text(&stopped), text(&whole));
    let model = |run: &Path| fs::read(run.join("global_step_12/huggingface/model.safetensors")).unwrap();
    assert!(model(&stopped) == model(&whole), "other weights");
}

/// The reader of the output ends first, like `tee` in `2>&1 | tee log` on Ctrl-C.
#[cfg(target_os = "linux")]
#[test]
fn nobody_who_reads_is_no_reason_to_end_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let mut command = small_run(&run, &["trainer.save_freq=50", "trainer.val_before_train=false", "trainer.logger=console"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_rows(&run);
    drop((child.stdout.take(), child.stderr.take()));
    signal(&child, "INT");
    let code = child.wait().unwrap().code();
    let log = fs::read_to_string(run.join("trainer.log")).unwrap();
    assert_eq!(code, Some(3), "{log}");
    assert!(
        log.trim_end().lines().last().unwrap().contains("the same command resumes from") && !log.contains("panicked"),
        "{log}"
    );

    let full = || fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let code = |args: &[&str], out: bool| {
        let mut command = trainer(args);
        command.stderr(full());
        if out {
            command.stdout(full());
        }
        command.status().unwrap().code()
    };
    assert_eq!(
        [code(&["nosuch=1"], false), code(&["nosuch"], false), code(&["config", "show"], false)],
        [Some(2), Some(2), Some(0)]
    );
    assert_eq!(
        [code(&["config", "show"], true), code(&["completions", "bash"], true)],
        [Some(1); 2],
        "nothing of it was printed"
    );
    let mut closed = Command::new("sh");
    closed
        .args(["-c", "\"$0\" config show --config arithmetic/first.yaml | true; \"$0\" nosuch=1 2>&1 | true"])
        .arg(env!("CARGO_BIN_EXE_trainer"));
    let messages = closed.output().unwrap();
    assert!(messages.stderr.is_empty(), "{}", String::from_utf8_lossy(&messages.stderr));
}

/// The run waits last for a tracker's server that is down, and only until a signal comes.
#[cfg(target_os = "linux")]
#[test]
fn a_run_is_finished_before_its_trackers_are() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    let mut command = small_run(&run, &["trainer.total_training_steps=1", "trainer.val_before_train=false"]);
    // Nothing listens on the discard port.
    command.arg("trainer.logger=[file,mlflow]").env("MLFLOW_TRACKING_URI", "http://127.0.0.1:9").stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    let state = || -> Option<serde_json::Value> {
        let info: serde_json::Value = serde_json::from_slice(&fs::read(run.join("run.json")).ok()?).ok()?;
        Some(info["state"].clone())
    };
    let deadline = Instant::now() + Duration::from_secs(120);
    while state() != Some("finished".into()) {
        assert!(Instant::now() < deadline, "{:?}", state());
        std::thread::sleep(Duration::from_millis(1));
    }
    signal(&child, "INT");
    let output = child.wait_with_output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), state()), (Some(0), Some("finished".into())), "{message}");
    let (end, trackers) = (message.find("finished 1 steps in"), message.find("not delivered within"));
    assert!(end.is_some() && end < trackers, "{message}");
}
