//! Tests of the status of a run, which the record, `runs show` and the page must all report in the same way.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use serde_json::{Value, json};

use super::record::{RecordedRun, metrics};
use super::series::{Series, read_end};
use crate::gather::Gather;
use crate::show::show;
use burnish_run::{INFO, METRICS, PHASE, Record, RunInfo, RunState};
use burnish_util::fs::write_atomic;
use burnish_util::interrupt::Interrupted;
use burnish_util::lock::lock;

/// Creates a run of 9 steps whose record has this state.
fn record(dir: &Path, state: Option<RunState>) -> RecordedRun {
    if let Some(state) = state {
        let info = RunInfo { state, step: 3, total_steps: 9, error: Some("no memory".into()), ..RunInfo::new("ppo", "p", "e") };
        info.write(dir).unwrap();
    }
    RecordedRun::read(dir)
}

/// Creates a checkpoint whose manifest lists no files.
fn save(dir: &Path, step: u64) {
    let manifest = json!({"burnish": "0", "step": step, "sequence": step, "files": []});
    write_atomic(&dir.join(format!("global_step_{step}/manifest.json")), manifest.to_string().as_bytes()).unwrap();
}

#[test]
fn a_run_runs_while_its_folder_is_locked_and_no_longer() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write_atomic(&dir.join(METRICS), b"{\"step\":4,\"data\":{}}\n").unwrap();
    write_atomic(&dir.join(PHASE), br#"{"step":5,"phase":"gen","time":1}"#).unwrap();
    let held = lock(dir).unwrap();
    let seen = |state| {
        let record = record(dir, state);
        let mut series = Series::default();
        read_end(&record.metrics, &mut series).unwrap();
        (record.describe(), record.step(&series), record.ended().is_some())
    };
    assert_eq!(seen(None), ("running in gen".into(), Some(4), false));
    assert_eq!(seen(Some(RunState::Running)), ("running in gen".into(), Some(4), false));
    drop(held);
    assert_eq!(seen(Some(RunState::Running)), ("killed in gen".into(), Some(4), true));
    save(dir, 2);
    assert_eq!(seen(Some(RunState::Running)).0, "killed in gen, resumable");
    assert_eq!(seen(Some(RunState::Failed)), ("failed, resumable".into(), Some(3), true));
    assert_eq!(seen(Some(RunState::Interrupted)).0, "interrupted, resumable");
    assert_eq!(seen(Some(RunState::Finished)), ("finished".into(), Some(3), true));
    fs::remove_file(dir.join(INFO)).unwrap();
    assert_eq!(seen(None).0, "killed in gen, resumable", "step 4 was done after the last save");
    save(dir, 4);
    assert_eq!(seen(None), ("finished".into(), Some(4), true));
    fs::write(dir.join(INFO), "{").unwrap();
    let damaged = record(dir, None);
    assert!(damaged.problems[0].contains("run.json is damaged") && damaged.describe() == "unknown in gen, resumable");
}

#[test]
fn a_folder_that_was_moved_has_its_own_metrics() {
    let dir = tempfile::tempdir().unwrap();
    let [own, there, elsewhere] = ["metrics.jsonl", "x/metrics.jsonl", "x/e.jsonl"].map(|file| dir.path().join(file));
    let from =
        |recorded: &PathBuf| metrics(dir.path(), Some(&RunInfo { metrics: recorded.clone(), ..RunInfo::new("ppo", "p", "e") }));
    assert_eq!(from(&there), own);
    write_atomic(&there, b"").unwrap();
    write_atomic(&elsewhere, b"").unwrap();
    assert_eq!([from(&there), from(&elsewhere)], [there.clone(), elsewhere.clone()]);
    write_atomic(&own, b"").unwrap();
    assert_eq!([from(&there), from(&elsewhere)], [own, elsewhere]);
}

#[test]
fn metrics_kept_elsewhere_are_found_from_where_the_run_was_started() {
    let dir = tempfile::tempdir().unwrap();
    let (run, cwd) = (dir.path().join("run"), dir.path().join("there"));
    let info = RunInfo { cwd: cwd.clone(), metrics: "logs/p/e.jsonl".into(), ..RunInfo::new("ppo", "p", "e") };
    fs::create_dir(&run).unwrap();
    info.write(&run).unwrap();
    let record = RecordedRun::read(&run);
    assert_eq!(record.metrics, cwd.join("logs/p/e.jsonl"));
    assert!(record.problems[0].contains("no metrics: ") && record.problems[0].contains("there/logs/p/e.jsonl"), "{record:?}");
    write_atomic(&cwd.join("logs/p/e.jsonl"), b"{\"step\":4,\"data\":{}}\n").unwrap();
    let record = RecordedRun::read(&run);
    assert_eq!((record.metrics, record.problems), (cwd.join("logs/p/e.jsonl"), vec![]));
}

/// A way in which a run ends, with the expected status.
struct Case {
    name: &'static str,
    end: fn(Record),
    /// Steps of whole checkpoints.
    saved: &'static [u64],
    words: &'static str,
    /// Error shown by `runs show`, the page and `--json`.
    error: Option<&'static str>,
}

const CASES: &[Case] = &[
    Case { name: "finished", end: |mut run| run.end(3, None, &Ok(())), saved: &[3], words: "finished", error: None },
    Case {
        name: "failed",
        end: |mut run| run.end(2, None, &Err(anyhow!("no server"))),
        saved: &[],
        words: "failed in reward",
        error: Some("no server"),
    },
    Case {
        name: "failed, saved",
        end: |mut run| run.end(2, None, &Err(anyhow!("no server"))),
        saved: &[2],
        words: "failed in reward, resumable",
        error: Some("no server"),
    },
    Case {
        name: "interrupted before the first step",
        end: |mut run| run.end(0, None, &stop("before the first step")),
        saved: &[],
        words: "interrupted",
        error: Some("before the first step"),
    },
    Case {
        name: "interrupted without a checkpoint",
        end: |mut run| run.end(2, None, &stop("nothing is saved")),
        saved: &[],
        words: "interrupted",
        error: Some("nothing is saved"),
    },
    Case {
        name: "interrupted",
        end: |mut run| run.end(2, None, &stop("after step 2")),
        saved: &[2],
        words: "interrupted, resumable",
        error: Some("after step 2"),
    },
    Case { name: "killed", end: std::mem::forget, saved: &[], words: "killed in reward", error: None },
    Case { name: "killed, saved", end: std::mem::forget, saved: &[1], words: "killed in reward, resumable", error: None },
    Case { name: "panicked", end: panic_with, saved: &[], words: "failed in reward", error: Some("the program panicked") },
    Case {
        name: "NaN, and failed",
        end: |mut run| {
            run.log(3, NAN.into_iter().collect());
            run.end(3, None, &Err(anyhow!("not finite")))
        },
        saved: &[],
        words: "failed in reward",
        error: Some("not finite"),
    },
    Case {
        name: "NaN, and finished",
        end: |mut run| {
            run.log(3, NAN.into_iter().collect());
            run.end(3, None, &Ok(()))
        },
        saved: &[3],
        words: "finished",
        error: None,
    },
];

fn stop(why: &str) -> anyhow::Result<()> {
    Err(Interrupted(why.to_owned()).into())
}

const NAN: [(&str, f64); 2] = [("val-core/a", f64::NAN), ("critic/score/mean", f64::INFINITY)];

fn panic_with(run: Record) {
    let panicking = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _run = run;
        panic!("for the test");
    }));
    assert!(panicking.is_err());
}

#[test]
fn every_end_is_told_alike_by_all_who_tell_it() {
    for Case { name, end, saved, words, error } in CASES {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let info = RunInfo::new("ppo", "p", "e");
        let run = Record::untracked(info.clone(), dir, None);
        run.stage().step(3);
        run.stage().enter("reward");
        end(run);
        saved.iter().for_each(|step| save(dir, *step));

        let record = RecordedRun::read(dir);
        assert_eq!((record.describe().as_str(), &record.problems), (*words, &vec![]), "{name}");
        let head = record.head(&Series::default());
        assert_eq!((head["state"].as_str(), &head["id"]), (words.split([' ', ',']).next(), &json!(info.id)), "{name}");
        assert_eq!(
            head["error"].as_str().map(|text| error.is_some_and(|error| text.contains(error))),
            error.map(|_| true),
            "{name}"
        );
        assert!(head["worked"].as_f64().is_some_and(|seconds| seconds >= 0.0), "{name}: {head}");
        let shown = show(dir);
        assert!(shown.contains(&format!("state        {words}\n")) && shown.contains(error.unwrap_or("")), "{name}: {shown}");
        let page = Gather::new(vec![dir.to_owned()]).data(false).unwrap().json;
        let page: Value = serde_json::from_str(&page).unwrap();
        for key in ["state", "resumable", "error", "phase", "best", "step"] {
            assert_eq!(page["runs"][0][key], head[key], "{name}: {key}");
        }

        // A record that cannot be read never counts as the record of a finished run.
        fs::write(dir.join(INFO), "{\"state\": \"fin").unwrap();
        let record = RecordedRun::read(dir);
        let resumable = if saved.is_empty() { "" } else { ", resumable" };
        assert_eq!(record.describe(), format!("unknown in reward{resumable}"), "{name}");
        assert!(show(dir).contains("run.json is damaged"), "{name}");
        assert_eq!(record.head(&Series::default())["state"], "unknown");
    }
}
