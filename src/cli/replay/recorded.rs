//! The record of the run that is replayed: its facts, its rows, and the checkpoint to begin at.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use burnish_checkpoint::{CheckpointEntry, Checkpoints, step_of, verify};
use burnish_report::folder::resolve;
use burnish_report::record::RecordedRun;
use burnish_run::RunInfo;
use burnish_tracking::Metrics;
use burnish_util::foreign;
use burnish_util::json_number;

/// A row of metrics: each name with the text of its value in the file, in the order of the file.
pub(super) type MetricRow = Vec<(String, String)>;

/// Largest number of bytes of a metrics file.
const LARGEST: u64 = 1 << 32;

/// Record of a run.
pub(super) struct RecordedSteps {
    /// Folder of the run, absolute.
    pub dir: PathBuf,
    pub info: RunInfo,
    pub rows: BTreeMap<u64, MetricRow>,
    checkpoints: Vec<CheckpointEntry>,
}

/// The state from which a replay begins.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Beginning {
    pub step: u64,
    /// Its checkpoint; `None` for the start of the run.
    pub checkpoint: Option<PathBuf>,
}

impl RecordedSteps {
    /// Reads a run by its folder, a checkpoint or a file in it. Only reads.
    ///
    /// # Errors
    /// If the folder has no run, or its record or its rows cannot be read.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let dir = std::path::absolute(resolve(path)?)?;
        let info = RunInfo::read(&dir).context("a replay needs the settings that run.json has")?;
        let record = RecordedRun::read(&dir);
        let rows = rows(&record.metrics)?;
        if rows.keys().all(|step| *step == 0) {
            bail!("{} has no step yet: {}", dir.display(), record.metrics.display());
        }
        let checkpoints = Checkpoints::read_only(&dir).list()?;
        Ok(Self { dir, info, rows, checkpoints })
    }

    /// Returns the row of a step.
    ///
    /// # Errors
    /// If the record does not have it, with the steps that it has.
    pub(super) fn row(&self, step: u64) -> Result<&MetricRow> {
        let known = || {
            let steps: Vec<u64> = self.rows.keys().copied().filter(|step| *step > 0).collect();
            let [first, last] = [steps.first(), steps.last()].map(|step| step.copied().unwrap_or(0));
            format!("the record of {} has no step {step}: --step takes {first} to {last}", self.dir.display())
        };
        self.rows.get(&step).filter(|_| step > 0).with_context(known)
    }

    /// Returns the newest undamaged checkpoint before a step, or the start of the run.
    pub(super) fn before(&self, step: u64) -> Beginning {
        let complete = self.checkpoints.iter().filter(|saved| saved.step < step && saved.bytes.is_some());
        let undamaged = complete.into_iter().find(|saved| match verify(&saved.dir) {
            Ok(_) => true,
            Err(error) => {
                tracing::warn!("{} is left out: {error:#}", saved.dir.display());
                false
            }
        });
        if let Some(found) = undamaged {
            return Beginning { step: found.step, checkpoint: Some(found.dir.clone()) };
        }
        // A run may have begun at a checkpoint of another run.
        let from = self.setting("trainer.resume_from_path").and_then(Value::as_str).map(|path| self.info.cwd.join(path));
        let is_set = self.setting("trainer.resume_mode").and_then(Value::as_str) == Some("resume_path");
        let other = from.filter(|_| is_set).and_then(|path| Some((step_of(&path).ok().filter(|of| *of < step)?, path)));
        match other {
            Some((step, path)) => Beginning { step, checkpoint: Some(path) },
            None => Beginning { step: 0, checkpoint: None },
        }
    }

    /// Returns the checkpoint whose settings a step had. Settings may change where a run is resumed, and `run.json` has those of
    /// the last process.
    pub(super) fn settings_of(&self, step: u64) -> Option<PathBuf> {
        let resumed = &self.info.resumed;
        let until = resumed.iter().copied().filter(|at| *at >= step).min();
        let since = resumed.iter().copied().filter(|at| *at < step).max().unwrap_or(0);
        let is_of_process = |saved: &&CheckpointEntry| saved.step > since && until.is_none_or(|until| saved.step <= until);
        let mut own = self.checkpoints.iter().filter(|saved| saved.bytes.is_some()).filter(is_of_process);
        let config = own.next().map(|saved| saved.dir.join(burnish_checkpoint::CONFIG_FILE)).filter(|file| file.is_file());
        if config.is_none() && until.is_some() {
            tracing::warn!("no checkpoint has the settings of step {step}: those of the last process of the run are used");
        }
        config
    }

    /// Returns the value of a setting in run.json.
    pub(super) fn setting(&self, key: &str) -> Option<&Value> {
        self.info.config.iter().find(|setting| setting.key == key).map(|setting| &setting.value).filter(|value| !value.is_null())
    }

    /// Returns the seconds that steps took, by their recorded times.
    pub(super) fn seconds(&self, steps: std::ops::RangeInclusive<u64>) -> f64 {
        let time =
            |row: &MetricRow| row.iter().find(|(name, _)| name == "timing_s/step").and_then(|(_, text)| text.parse::<f64>().ok());
        let known: Vec<f64> = self.rows.values().filter_map(time).collect();
        let mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
        steps.map(|step| self.rows.get(&step).and_then(time).unwrap_or(mean)).sum()
    }
}

/// Reads the rows of a metrics file. The last row of a step counts; a line that is torn is left out.
fn rows(path: &Path) -> Result<BTreeMap<u64, MetricRow>> {
    let text = foreign::read_text(path, LARGEST)?;
    let row = |line: &str| {
        let row: Value = serde_json::from_str(line).ok()?;
        let data = row["data"].as_object()?.iter().map(|(name, value)| (name.clone(), value.to_string()));
        Some((row["step"].as_u64()?, data.collect()))
    };
    Ok(text.lines().filter_map(row).collect())
}

/// Returns a row as the metrics file would have it.
pub(super) fn as_recorded(metrics: &Metrics) -> MetricRow {
    metrics.iter().map(|(name, value)| (name.to_owned(), json_number::to_value(value).to_string())).collect()
}
