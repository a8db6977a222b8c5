//! Tests against packages that the tests write.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, UNIX_EPOCH};

use anyhow::Result;
use serde_json::{Value, json};

use super::line::{cell, line, list};
use super::sdk::Sdk;
use super::transport::open;
use crate::outbox::{Content, QueuedRow};
use crate::{Cell, Ending, Exit, Metrics, StepTable, TrackedRun, Tracker};

/// The part of swanlab that the bridge uses. It records its calls, and fails at some steps.
const SWANLAB: &str = r#"
import os, pathlib, sys, types

def note(*what):
    with open(pathlib.Path(__file__).parent / "told.txt", "a") as file:
        print(*what, file=file)

def init(project, config, logdir, mode, **more):
    print("printed by the package")
    note("init", project, config["FRAMEWORK"], config["trainer"], more, os.getpid(), repr(sys.stdin.read()))
    if project == "refused":
        raise ValueError("no such workspace")
    return types.SimpleNamespace(id="id1")

def log(data, step):
    if step == 3:
        raise RuntimeError("not today")
    if step == 66:
        os.kill(os.getpid(), 9)
    note("log", step, data)

def finish(*state, **more):
    note("finish", *state)

class Table:
    def add(self, headers, rows):
        self.all = headers, rows
    def __repr__(self):
        return repr(self.all)

echarts = types.SimpleNamespace(Table=Table)
"#;

struct Bench {
    dir: tempfile::TempDir,
    session: TrackedRun,
}

/// Creates a Python interpreter that finds the package of the tests but no settings of the user who runs them.
fn bench() -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let place = |name: &str| dir.path().join(name);
    fs::write(place("swanlab.py"), SWANLAB).unwrap();
    let script = format!(
        "#!/bin/sh\nunset SWANLAB_API_KEY SWANLAB_MODE SWANLAB_LOG_DIR\nPYTHONDONTWRITEBYTECODE=1 PYTHONPATH='{}' exec python3 \"$@\"\n",
        dir.path().display()
    );
    fs::write(place("script"), script).unwrap();
    // Another process copies the file: a file that this process has open for writing, in a child of any thread, cannot be
    // executed.
    assert!(Command::new("install").args(["-m", "755"]).args([place("script"), place("python")]).status().unwrap().success());
    let python = place("python").to_str().unwrap().to_owned();
    let session = TrackedRun { python, ..TrackedRun::in_folder(dir.path().into(), None) };
    Bench { dir, session }
}

impl Bench {
    fn received(&self) -> Vec<String> {
        fs::read_to_string(self.path("told.txt")).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn open(&self) -> Result<Box<dyn Tracker>> {
        (super::SWANLAB.open)(&self.session)
    }
}

fn metrics(values: &[(&str, f64)]) -> Metrics {
    values.iter().copied().collect()
}

#[test]
fn rows_tables_and_the_end_reach_the_package() {
    let bench = bench();
    let mut tracker = bench.open().unwrap();
    let special = [("a/\"b", 0.1 + 0.2), ("c", f64::NAN), ("d", f64::INFINITY), ("e", f64::NEG_INFINITY), ("f", 1e-300)];
    tracker.log(1, &metrics(&special)).unwrap();
    let rows = vec![vec!["1\n2".into(), Cell::Number(2.0), Cell::None]];
    let columns = ["query", "score", "other"].map(String::from).to_vec();
    tracker.table(1, &StepTable { name: "texts", columns, rows, brief: Vec::new() }).unwrap();
    tracker.finish(&Ending::uninterrupted(Exit::Finished)).unwrap();
    let received = bench.received();
    assert!(received[0].starts_with("init project burnish {'seed': 1} {'experiment_name': 'experiment'} "), "{}", received[0]);
    assert!(received[0].ends_with(" ''"), "{}", received[0]);
    let expected = [
        r#"log 1 {'a/"b': 0.30000000000000004, 'c': nan, 'd': inf, 'e': -inf, 'f': 1e-300}"#,
        r"log 1 {'texts': (['step', 'query', 'score', 'other'], [[1, '1\n2', 2.0, None]])}",
        "finish",
    ];
    assert_eq!(received[1..], expected);
    assert_eq!(fs::read_to_string(bench.path("swanlab.log")).unwrap(), "printed by the package\n");

    let resumed = TrackedRun { resumed_step: Some(1), ..bench.session.clone() };
    (super::SWANLAB.open)(&resumed).unwrap().finish(&Ending::uninterrupted(Exit::Interrupted)).unwrap();
    let received = bench.received();
    assert!(received[4].contains("'id': 'id1', 'resume': 'allow'"), "{}", received[4]);
    assert_eq!(received[5], "finish aborted");
}

#[test]
fn a_package_that_is_missing_broken_or_refuses_is_named_before_training() {
    let mut bench = bench();
    let error = |bench: &Bench, module| {
        let sdk = Sdk { module, ..Sdk::plain("swanlab", "", Some("a-package"), &bench.session) };
        open(&bench.session, sdk).err().unwrap().to_string()
    };
    let missing = error(&bench, "no_module_has_this_name");
    assert!(missing.contains(&format!("{} -m pip install a-package", bench.session.python)), "{missing}");
    fs::write(bench.path("broken.py"), "import no_module_has_this_name_either").unwrap();
    let broken = error(&bench, "broken");
    assert!(broken.contains("No module named 'no_module_has_this_name_either'") && !broken.contains("pip"), "{broken}");
    bench.session.project = "refused".to_owned();
    let refused = error(&bench, "swanlab");
    assert!(refused.contains("ValueError: no such workspace"), "{refused}");
    bench.session.python = bench.path("absent").display().to_string();
    let absent = error(&bench, "swanlab");
    assert!(absent.contains("needs Python") && absent.contains("reward.python"), "{absent}");
}

#[test]
fn what_goes_wrong_in_the_package_costs_a_row() {
    let bench = bench();
    let mut tracker = bench.open().unwrap();
    // The error of a row is returned by a later call.
    let mut errors: Vec<_> = [2, 3, 4].into_iter().filter_map(|step| tracker.log(step, &metrics(&[("a", 1.0)])).err()).collect();
    errors.extend(tracker.finish(&Ending::uninterrupted(Exit::Failed)).err());
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(errors, ["1 row was lost: step 3: RuntimeError: not today"]);
    let received = bench.received();
    assert_eq!(received[1..], ["log 2 {'a': 1.0}", "log 4 {'a': 1.0}", "finish crashed"]);
}

#[test]
fn a_package_that_dies_costs_the_rows_behind() {
    let bench = bench();
    let mut tracker = bench.open().unwrap();
    let mut lost: Vec<String> =
        (65..=70).filter_map(|step| tracker.log(step, &metrics(&[("a", 1.0)])).err()).map(|e| e.to_string()).collect();
    lost.extend(tracker.finish(&Ending::uninterrupted(Exit::Finished)).err().map(|error| error.to_string()));
    let rows: usize = lost.iter().map(|error| error.split(' ').next().unwrap().parse::<usize>().unwrap_or(0)).sum();
    assert_eq!(rows, 5, "{lost:?}");
    assert!(lost[0].contains("step 66") && lost[0].contains("swanlab.log"), "{lost:?}");
}

#[test]
fn the_process_does_not_outlive_the_tracker() {
    let bench = bench();
    drop(bench.open().unwrap());
    let received = bench.received();
    let pid = received[0].split(' ').rev().nth(1).unwrap();
    let started = Instant::now();
    while Path::new("/proc").join(pid).exists() {
        assert!(started.elapsed() < Duration::from_secs(10), "{pid} is still there");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn numbers_are_those_of_python() {
    let row = |metrics: Metrics| QueuedRow { step: 1, time: UNIX_EPOCH, content: Content::Metrics(metrics) };
    let line = line(&row(metrics(&[("a", 1.5), ("b", f64::NEG_INFINITY)])), |name| format!("{name}!"));
    assert_eq!(line, r#"{"step":1,"time":0,"metrics":{"a!":1.5,"b!":-Infinity}}"#);
    assert_eq!(serde_json::from_str::<Value>(&list(["1".to_owned(), cell(&Cell::None)])).unwrap(), json!([1, null]));
}
