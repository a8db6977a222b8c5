//! How a run stands: what its folder records, whether a process works in it, and what it can go on from.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde_json::{Value, json};

use super::folder::METRICS;
use super::series::{Series, read_end};
use crate::checkpoint::{Checkpoints, Listed};
use crate::run::{INFO, PHASE, Phase, RunInfo, State};
use crate::util::lock::is_locked;

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    Running,
    Finished,
    Interrupted,
    Failed,
    /// Its process ended without a word.
    Killed,
}

/// What the folder of a run says.
#[derive(Debug)]
pub struct Record {
    pub dir: PathBuf,
    /// Runs of old versions, and metrics alone, have none.
    pub info: Option<RunInfo>,
    pub standing: Standing,
    /// Where it is, or was when it ended.
    pub phase: Option<String>,
    /// The metrics file.
    pub metrics: PathBuf,
    /// The highest step first.
    pub checkpoints: Vec<Listed>,
    /// The last sign of life, in seconds since 1970.
    pub touched: Option<f64>,
    /// What could not be read.
    pub problem: Option<String>,
}

impl Record {
    pub fn read(dir: &Path) -> Self {
        let (info, problem) = match RunInfo::read(dir) {
            Ok(info) => (Some(info), None),
            Err(_) if !dir.join(INFO).exists() => (None, None),
            Err(error) => (None, Some(format!("{error:#}; what it says is left out"))),
        };
        let phase = Phase::read(dir);
        let metrics = metrics(dir, info.as_ref());
        let touched =
            [dir.join(INFO), dir.join(PHASE), metrics.clone()].iter().filter_map(|file| modified(file)).reduce(f64::max);
        let checkpoints = Checkpoints::look(dir).list().unwrap_or_default();
        let standing = standing(info.as_ref().map(|info| info.state), is_locked(dir), &checkpoints, &metrics);
        let phase = match standing {
            Standing::Running | Standing::Killed => phase.map(|at| at.phase),
            _ => info.as_ref().and_then(|info| info.phase.clone()),
        };
        Self { dir: dir.to_owned(), info, standing, phase, metrics, checkpoints, touched, problem }
    }

    /// The experiment, or the folder's name.
    pub fn name(&self) -> String {
        let experiment = self.info.as_ref().map(|info| info.experiment.clone()).filter(|name| !name.is_empty());
        experiment.unwrap_or_else(|| {
            let dir = self.dir.canonicalize().unwrap_or_else(|_| self.dir.clone());
            dir.file_name().map_or_else(|| dir.display().to_string(), |name| name.to_string_lossy().into_owned())
        })
    }

    /// Such as `failed in update_actor, resumable`.
    pub fn in_words(&self) -> String {
        let state = match self.standing {
            Standing::Running => "running",
            Standing::Finished => "finished",
            Standing::Interrupted => "interrupted",
            Standing::Failed => "failed",
            Standing::Killed => "killed",
        };
        let phase = self.phase.as_ref().map_or_else(String::new, |phase| format!(" in {phase}"));
        format!("{state}{phase}{}", if self.resumable() { ", resumable" } else { "" })
    }

    /// Whether the same command would go on with it.
    pub fn resumable(&self) -> bool {
        !matches!(self.standing, Standing::Running | Standing::Finished) && self.resumes_after().is_some()
    }

    /// The last whole checkpoint.
    pub fn resumes_after(&self) -> Option<&Listed> {
        self.checkpoints.iter().find(|checkpoint| checkpoint.bytes.is_some())
    }

    /// Steps done. While a run goes on, and when it was killed, its metrics know best.
    pub fn step(&self, series: &Series) -> Option<u64> {
        match (&self.info, self.standing) {
            (Some(info), Standing::Finished | Standing::Interrupted | Standing::Failed) => Some(info.step),
            (info, _) => series.last_step().max(info.as_ref().map(|info| info.step)),
        }
    }

    /// How many steps the run is to have.
    pub fn total_steps(&self) -> Option<u64> {
        self.info.as_ref().map(|info| info.total_steps).filter(|steps| *steps > 0)
    }

    /// When it began, in seconds since 1970.
    pub fn started(&self) -> Option<f64> {
        self.info.as_ref().map(|info| info.started)
    }

    /// When it ended, or was last seen alive; nothing while it runs.
    pub fn ended(&self) -> Option<f64> {
        match self.standing {
            Standing::Running => None,
            _ => self.info.as_ref().and_then(|info| info.ended).or(self.touched),
        }
    }

    /// What the page says of a run beside its files.
    pub fn head(&self, series: &Series) -> Value {
        let info = self.info.as_ref();
        let text = |of: fn(&RunInfo) -> &String| info.map(of).filter(|text| !text.is_empty());
        json!({
            "name": self.name(),
            "dir": self.dir.display().to_string(),
            "id": text(|info| &info.id),
            "kind": text(|info| &info.kind),
            "state": self.standing,
            "resumable": self.resumable(),
            "error": info.and_then(|info| info.error.as_ref()),
            "phase": self.phase,
            "started": self.started(),
            "ended": self.ended(),
            "step": self.step(series),
            "total_steps": self.total_steps(),
            "device": text(|info| &info.device),
            "model": text(|info| &info.model),
            "command": info.map(|info| command_line(&info.command)),
            "burnish": text(|info| &info.version),
            "best": info.and_then(|info| info.best.as_ref()),
        })
    }
}

/// That of the record. A folder that was moved has its metrics in it, whatever the record says.
fn metrics(dir: &Path, info: Option<&RunInfo>) -> PathBuf {
    let own = dir.join(METRICS);
    match info.map(|info| &info.metrics) {
        Some(recorded) if recorded.is_file() && !(recorded.ends_with(METRICS) && own.is_file()) => recorded.clone(),
        _ => own,
    }
}

fn standing(recorded: Option<State>, locked: Option<bool>, checkpoints: &[Listed], metrics: &Path) -> Standing {
    match (recorded, locked) {
        (Some(State::Finished), _) => Standing::Finished,
        (Some(State::Interrupted), _) => Standing::Interrupted,
        (Some(State::Failed), _) => Standing::Failed,
        (Some(State::Running), Some(false)) => Standing::Killed,
        (Some(State::Running), _) | (None, Some(true)) => Standing::Running,
        // Nothing tells how it ended, but a run that saves at all saves its last step.
        (None, _) => {
            let mut last = Series::default();
            _ = read_end(metrics, &mut last);
            let unsaved = checkpoints.first().zip(last.last_step()).is_some_and(|(saved, step)| saved.step < step);
            if unsaved { Standing::Killed } else { Standing::Finished }
        }
    }
}

fn modified(file: &Path) -> Option<f64> {
    let modified: SystemTime = fs::metadata(file).ok()?.modified().ok()?;
    Some(modified.duration_since(UNIX_EPOCH).ok()?.as_secs_f64())
}

/// Words as a shell reads them.
pub fn command_line(words: &[String]) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%^".contains(c);
    let quoted = words.iter().map(|word| match word.chars().all(plain) && !word.is_empty() {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::util::fs::write_atomic;
    use crate::util::lock::lock;

    /// A run of 9 steps that says it is in this state.
    fn record(dir: &Path, state: Option<State>) -> Record {
        if let Some(state) = state {
            let info =
                RunInfo { state, step: 3, total_steps: 9, error: Some("no memory".into()), ..RunInfo::new("ppo", "p", "e") };
            info.write(dir).unwrap();
        }
        Record::read(dir)
    }

    /// A checkpoint without a file that its manifest would have to name.
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
            (record.in_words(), record.step(&series), record.ended().is_some())
        };
        assert_eq!(seen(None), ("running in gen".into(), Some(4), false));
        assert_eq!(seen(Some(State::Running)), ("running in gen".into(), Some(4), false));
        drop(held);
        assert_eq!(seen(Some(State::Running)), ("killed in gen".into(), Some(4), true));
        save(dir, 2);
        assert_eq!(seen(Some(State::Running)).0, "killed in gen, resumable");
        assert_eq!(seen(Some(State::Failed)), ("failed, resumable".into(), Some(3), true));
        assert_eq!(seen(Some(State::Interrupted)).0, "interrupted, resumable");
        assert_eq!(seen(Some(State::Finished)), ("finished".into(), Some(3), true));
        fs::remove_file(dir.join(INFO)).unwrap();
        assert_eq!(seen(None).0, "killed in gen, resumable", "step 4 was done after the last save");
        save(dir, 4);
        assert_eq!(seen(None), ("finished".into(), Some(4), true));
        fs::write(dir.join(INFO), "{").unwrap();
        assert!(record(dir, None).problem.unwrap().contains("run.json is damaged"));
    }

    #[test]
    fn a_folder_that_was_moved_has_its_own_metrics() {
        let dir = tempfile::tempdir().unwrap();
        let [own, there, elsewhere] = ["metrics.jsonl", "x/metrics.jsonl", "x/e.jsonl"].map(|file| dir.path().join(file));
        let from = |recorded: &PathBuf| {
            metrics(dir.path(), Some(&RunInfo { metrics: recorded.clone(), ..RunInfo::new("ppo", "p", "e") }))
        };
        assert_eq!(from(&there), own);
        write_atomic(&there, b"").unwrap();
        write_atomic(&elsewhere, b"").unwrap();
        assert_eq!([from(&there), from(&elsewhere)], [there.clone(), elsewhere.clone()]);
        write_atomic(&own, b"").unwrap();
        assert_eq!([from(&there), from(&elsewhere)], [own, elsewhere]);
    }

    #[test]
    fn shells_read_the_words_back() {
        let words = ["trainer", "a.b=[1,2]", "it's", "", "x=$HOME", "ü"].map(str::to_owned);
        assert_eq!(command_line(&words), r"trainer 'a.b=[1,2]' 'it'\''s' '' 'x=$HOME' ü");
    }
}
