//! Runs the real binary and reads its output.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output};

use burnish::model::weights::read_safetensors;
use burnish::util::fs::files_under;
use serde_json::{Map, Value};

/// The command `trainer ARGS…` in the repository's root.
pub(crate) fn trainer(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trainer"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args(args);
    for name in ["VERL_FILE_LOGGER_PATH", "VERL_FILE_LOGGER_ROOT", "TENSORBOARD_DIR", "RUST_LOG"] {
        command.env_remove(name);
    }
    // Names are looked up on the test's own server or not at all.
    command.env("HF_HUB_OFFLINE", "1").env_remove("HF_ENDPOINT");
    command
}

/// The command with the recipe of the built-in task, for runs that name another model or other data: without a name,
/// reinforcement learning.
pub(crate) fn of_task(command: &str) -> Command {
    match command {
        "" => trainer(&["--config", "arithmetic/first.yaml"]),
        command => trainer(&[command, "--config", &format!("arithmetic/first_{command}.yaml")]),
    }
}

/// Runs a command to its end, which must be successful, and reads every checkpoint in the folder of its run.
pub(crate) fn succeed(mut command: Command) -> Output {
    let output = command.output().expect("the binary starts");
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    let folder = |arg: &OsStr| Some(Path::new(env!("CARGO_MANIFEST_DIR")).join(arg.to_str()?.strip_prefix(FOLDER)?));
    command.get_args().filter_map(folder).for_each(|folder| assert_finite(&folder));
    output
}

/// The setting of a run's folder.
const FOLDER: &str = "trainer.default_local_dir=";

/// Asserts that all numbers of the checkpoints in a run's folder are finite.
fn assert_finite(run: &Path) {
    for path in files_under(run).unwrap_or_default() {
        let is_saved = path.iter().next().is_some_and(|first| first.to_string_lossy().starts_with("global_step_"));
        if is_saved && path.extension().is_some_and(|end| end == "safetensors") {
            let path = run.join(path);
            for (name, values) in read_safetensors(&path).expect("a file of tensors") {
                assert!(values.iter().all(|x| x.is_finite()), "{}: `{name}` is not finite", path.display());
            }
        }
    }
}

/// The metric rows of a run, as (step, data), without metrics of time and memory.
pub(crate) fn rows(run: &Path) -> Vec<(u64, Map<String, Value>)> {
    let text = std::fs::read_to_string(run.join("metrics.jsonl")).expect("metrics.jsonl");
    let row = |line: &str| {
        let mut row: Value = serde_json::from_str(line).expect("a JSON row");
        let mut data = row["data"].take().as_object().expect("data").clone();
        data.retain(|key, _| !key.starts_with("timing_") && !key.starts_with("perf/"));
        (row["step"].as_u64().expect("step"), data)
    };
    text.lines().map(row).collect()
}

/// The [`rows`] as text, for comparisons byte for byte.
pub(crate) fn text(run: &Path) -> String {
    rows(run).into_iter().map(|(step, data)| format!("{step} {}\n", Value::Object(data))).collect()
}

/// Copies a folder.
pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder to copy") {
        let path = entry.expect("an entry").path();
        let to = to.join(path.file_name().expect("a name"));
        match path.is_dir() {
            true => copy(&path, &to),
            false => _ = std::fs::copy(&path, &to).expect("a copy"),
        }
    }
}

/// The number of memory parts in a dry run's report with this word in their name or phase.
pub(crate) fn parts_of_memory(dry_run: &Output, word: &str) -> usize {
    let report = String::from_utf8_lossy(&dry_run.stdout);
    report.lines().filter(|line| line.contains(" GiB") && line.contains(word) && !line.starts_with("  peak")).count()
}

/// Settings of a run that is small enough for a test, with two mini-batches per step so that not all ratios are 1.
pub(crate) const SMALL: &[&str] = &[
    "data.train_batch_size=8",
    "data.val_max_samples=32",
    "actor_rollout_ref.rollout.n=4",
    "actor_rollout_ref.actor.ppo_mini_batch_size=4",
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8",
    "trainer.test_freq=3",
    "trainer.logger=[file]",
];

/// Returns a run with [`SMALL`] settings and its own folder.
pub(crate) fn small_run(folder: &Path, more: &[&str]) -> Command {
    let mut command = of_task("");
    command.args(SMALL).arg(format!("trainer.default_local_dir={}", folder.display())).args(more);
    command
}

/// The messages of a command, as text.
pub(crate) fn messages(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The metrics of the last step of a small run, which is the second.
pub(crate) fn last_step(folder: &Path, name: &str, options: &[&str]) -> Map<String, Value> {
    let at = folder.join(name);
    let mut command =
        small_run(&at, &["trainer.total_training_steps=2", "trainer.val_before_train=false", "trainer.test_freq=-1"]);
    command.args(options);
    succeed(command);
    rows(&at).pop().expect("a row").1
}

/// The value of a metric.
pub(crate) fn number(row: &Map<String, Value>, name: &str) -> f64 {
    row.get(name).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {name} in {:?}", row.keys()))
}
