//! Status of a run: from its record, from the lock of its folder, and from the checkpoint it can be resumed from.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde_json::{Value, json};

use super::series::{Series, read_end};
use burnish_checkpoint::{CheckpointEntry, Checkpoints};
use burnish_run::{INFO, METRICS, PHASE, Phase, ReadableRecord, RecordedAlarm, RunInfo, RunState};
use burnish_util::lock::is_locked;
use burnish_util::shell::command_line;
use burnish_util::time::unix_time;

/// Status of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    Running,
    Finished,
    Interrupted,
    Failed,
    /// The process ended without recording an end.
    Killed,
    /// The record is damaged.
    Unknown,
}

/// Contents of a run's folder.
#[derive(Debug)]
pub struct RecordedRun {
    pub dir: PathBuf,
    /// Facts about the run; `None` for runs of old versions, and for metrics without a record.
    pub info: Option<RunInfo>,
    pub status: RunStatus,
    /// Current phase of the run, or the last one if it ended.
    pub phase: Option<String>,
    /// Metrics file.
    pub metrics: PathBuf,
    /// Checkpoints, the highest step first.
    pub checkpoints: Vec<CheckpointEntry>,
    /// Time when the run was last seen alive, in seconds since 1970.
    pub touched: Option<f64>,
    /// Time when its last phase began, in seconds since 1970.
    phase_began: Option<f64>,
    /// Problems with files that could not be read.
    pub problems: Vec<String>,
}

impl RecordedRun {
    pub fn read(dir: &Path) -> Self {
        let ReadableRecord { info, state, problem } = RunInfo::read_damaged(dir);
        let damaged = problem.is_some() && state.is_none();
        let mut problems: Vec<String> = problem.into_iter().collect();
        let phase = Phase::read(dir);
        let phase_began = phase.as_ref().map(|at| at.time);
        let metrics = metrics(dir, info.as_ref());
        // A run creates this file before anything else.
        if let Err(error) = fs::metadata(&metrics) {
            problems.push(format!("no metrics: {}: {error}", metrics.display()));
        }
        let touched =
            [dir.join(INFO), dir.join(PHASE), metrics.clone()].iter().filter_map(|file| modified(file)).reduce(f64::max);
        let checkpoints = Checkpoints::read_only(dir).list().unwrap_or_default();
        let status = match (damaged, is_locked(dir)) {
            (true, Some(true)) => RunStatus::Running,
            (true, _) => RunStatus::Unknown,
            (false, locked) => status(state, locked, &checkpoints, &metrics),
        };
        let phase = match status {
            RunStatus::Running | RunStatus::Killed | RunStatus::Unknown => phase.map(|at| at.phase),
            _ => info.as_ref().and_then(|info| info.phase.clone()),
        };
        Self { dir: dir.to_owned(), info, status, phase, metrics, checkpoints, touched, phase_began, problems }
    }

    /// Returns the name of the experiment, or of the folder.
    pub fn name(&self) -> String {
        let experiment = self.info.as_ref().map(|info| info.experiment.clone()).filter(|name| !name.is_empty());
        experiment.unwrap_or_else(|| {
            let dir = self.dir.canonicalize().unwrap_or_else(|_| self.dir.clone());
            dir.file_name().map_or_else(|| dir.display().to_string(), |name| name.to_string_lossy().into_owned())
        })
    }

    /// Returns the alarms of the run, in the order of their steps.
    pub(crate) fn alarms(&self) -> &[RecordedAlarm] {
        self.info.as_ref().map_or(&[], |info| &info.alarms)
    }

    /// Describes the status, for example `failed in update_actor, resumable, alarm: NaN`.
    pub fn describe(&self) -> String {
        let state = match self.status {
            RunStatus::Running => "running",
            RunStatus::Finished => "finished",
            RunStatus::Interrupted => "interrupted",
            RunStatus::Failed => "failed",
            RunStatus::Killed => "killed",
            RunStatus::Unknown => "unknown",
        };
        let phase = self.phase.as_ref().map_or_else(String::new, |phase| format!(" in {phase}"));
        let alarms = match self.alarms() {
            [] => String::new(),
            [one] => format!(", alarm: {}", one.name),
            several => format!(", {} alarms", several.len()),
        };
        format!("{state}{phase}{}{alarms}", if self.resumable() { ", resumable" } else { "" })
    }

    /// Returns true if the same command would resume the run.
    pub fn resumable(&self) -> bool {
        !matches!(self.status, RunStatus::Running | RunStatus::Finished) && self.resumes_after().is_some()
    }

    /// Returns the last whole checkpoint.
    pub(crate) fn resumes_after(&self) -> Option<&CheckpointEntry> {
        self.checkpoints.iter().find(|checkpoint| checkpoint.bytes.is_some())
    }

    /// Returns the number of steps done. For an active or killed run, the metrics file is the most up to date.
    pub fn step(&self, series: &Series) -> Option<u64> {
        match (&self.info, self.status) {
            (Some(info), RunStatus::Finished | RunStatus::Interrupted | RunStatus::Failed) => Some(info.step),
            (info, _) => series.last_step().max(info.as_ref().map(|info| info.step)),
        }
    }

    /// Returns the planned number of steps, if known.
    pub fn total_steps(&self) -> Option<u64> {
        self.info.as_ref().map(|info| info.total_steps).filter(|steps| *steps > 0)
    }

    /// Returns the time when the run began, in seconds since 1970.
    pub fn started(&self) -> Option<f64> {
        self.info.as_ref().map(|info| info.started).filter(|time| *time > 0.0)
    }

    /// Returns the number of seconds that its processes have worked.
    pub fn worked(&self) -> Option<f64> {
        let info = self.info.as_ref().filter(|_| self.started().is_some())?;
        let until = match self.status {
            RunStatus::Running => unix_time(),
            _ => info.ended.or(self.phase_began).or(self.touched)?,
        };
        Some(info.worked(until))
    }

    /// Returns the time when the run ended or was last seen alive; `None` while it runs.
    pub fn ended(&self) -> Option<f64> {
        match self.status {
            RunStatus::Running => None,
            _ => self.info.as_ref().and_then(|info| info.ended).or(self.touched),
        }
    }

    /// Returns the page's data about a run except for the contents of its files.
    pub fn head(&self, series: &Series) -> Value {
        let info = self.info.as_ref();
        let text = |of: fn(&RunInfo) -> &String| info.map(of).filter(|text| !text.is_empty());
        json!({
            "name": self.name(),
            "dir": self.dir.display().to_string(),
            "id": text(|info| &info.id),
            "kind": text(|info| &info.kind),
            "state": self.status,
            "resumable": self.resumable(),
            "problems": self.problems,
            "alarms": self.alarms(),
            "no_signal": info.and_then(|info| info.no_signal.as_ref()),
            "error": info.and_then(|info| info.error.as_ref()),
            "phase": self.phase,
            "started": self.started(),
            "ended": self.ended(),
            "worked": self.worked(),
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

/// Returns the metrics file that the record names, relative to the folder in which the run was started. If the run's folder was
/// moved, the metrics file in it is used instead.
pub(super) fn metrics(dir: &Path, info: Option<&RunInfo>) -> PathBuf {
    let own = dir.join(METRICS);
    let Some(info) = info.filter(|info| !info.metrics.as_os_str().is_empty()) else { return own };
    let recorded = info.cwd.join(&info.metrics);
    // True if the file was in the run's folder when the run was recorded, even if the folder was moved later.
    let folder = info.config.iter().find(|setting| setting.key == "trainer.default_local_dir");
    let was_own = match folder.and_then(|setting| setting.value.as_str()) {
        Some(folder) => recorded == info.cwd.join(folder).join(METRICS),
        None => recorded.ends_with(METRICS),
    };
    // If the file outside the folder is missing too, that file is the one to report.
    if !was_own || recorded.is_file() && !own.is_file() { recorded } else { own }
}

fn status(recorded: Option<RunState>, locked: Option<bool>, checkpoints: &[CheckpointEntry], metrics: &Path) -> RunStatus {
    match (recorded, locked) {
        (Some(RunState::Finished), _) => RunStatus::Finished,
        (Some(RunState::Interrupted), _) => RunStatus::Interrupted,
        (Some(RunState::Failed), _) => RunStatus::Failed,
        (Some(RunState::Running), Some(false)) => RunStatus::Killed,
        (Some(RunState::Running), _) | (None, Some(true)) => RunStatus::Running,
        // There is no record of the end, but a run that saves checkpoints saves its last step.
        (None, _) => {
            let mut last = Series::default();
            _ = read_end(metrics, &mut last);
            let unsaved = checkpoints.first().zip(last.last_step()).is_some_and(|(saved, step)| saved.step < step);
            if unsaved { RunStatus::Killed } else { RunStatus::Finished }
        }
    }
}

fn modified(file: &Path) -> Option<f64> {
    let modified: SystemTime = fs::metadata(file).ok()?.modified().ok()?;
    Some(modified.duration_since(UNIX_EPOCH).ok()?.as_secs_f64())
}
