//! The jobs of a sweep, and the metric that compares them.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::super::record::{RecordedRun, RunStatus};
use super::super::series::Series;
use super::super::tail::Tail;
use burnish_run::{JobState, SweepJob, SweepRecord, WatchedMetric};

/// Metrics of training that compare jobs without validation, and true if greater is better.
const TRAINING: &[(&str, bool)] = &[("critic/score/mean", true), ("critic/rewards/mean", true), ("train/loss", false)];

/// A sweep with the records of its jobs.
#[derive(Debug)]
pub struct Sweep {
    pub(super) dir: PathBuf,
    pub(super) record: SweepRecord,
    pub(super) jobs: Vec<ReadJob>,
    /// The metric that compares the jobs, and true if greater is better; `None` without results.
    pub(super) metric: Option<(String, bool)>,
}

/// A job and what its folder says.
#[derive(Debug)]
pub(super) struct ReadJob {
    pub job: SweepJob,
    /// `None` before the first start.
    pub run: Option<RecordedRun>,
    pub series: Series,
}

impl Sweep {
    /// Reads a sweep. Jobs that cannot be read are warned of, and count as jobs without results.
    ///
    /// # Errors
    /// If the folder has no record of a sweep.
    pub fn read(dir: &Path) -> Result<Self> {
        let record = SweepRecord::read(dir)?;
        let jobs: Vec<ReadJob> = record.jobs.iter().map(|job| ReadJob::read(dir, job)).collect();
        // A job that was interrupted before its first validation has metrics of training alone.
        let finished_first = jobs.iter().filter(|job| job.is_finished()).chain(&jobs);
        let metric =
            finished_first.filter_map(|job| Some((job.run.as_ref()?, &job.series))).find_map(|(run, series)| metric(run, series));
        Ok(Self { dir: dir.to_owned(), record, jobs, metric })
    }

    /// Returns the folders of the jobs.
    pub fn job_folders(&self) -> Vec<PathBuf> {
        self.jobs.iter().map(|job| self.dir.join(&job.job.name)).collect()
    }

    /// Returns the folders of the sweeps that these runs belong to, each once.
    pub fn folders<'a>(runs: impl Iterator<Item = &'a Path>) -> Vec<PathBuf> {
        let mut folders: Vec<PathBuf> = runs.filter_map(folder_of).collect();
        folders.sort();
        folders.dedup();
        folders
    }
}

/// Returns the folder of the sweep that a run belongs to.
pub fn folder_of(run: &Path) -> Option<PathBuf> {
    let run = if run == Path::new(".") { run.canonicalize().ok()? } else { run.to_owned() };
    let above = run.parent()?;
    let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
    let name = run.file_name()?.to_string_lossy().into_owned();
    let record = SweepRecord::read(above).ok()?;
    record.jobs.iter().any(|job| job.name == name).then(|| above.to_owned())
}

impl ReadJob {
    fn read(sweep: &Path, job: &SweepJob) -> Self {
        let dir = sweep.join(&job.name);
        let mut series = Series::default();
        let run = super::super::folder::is_run(&dir).then(|| RecordedRun::read(&dir));
        if let Some(run) = &run
            && let Err(error) = Tail::new(run.metrics.clone()).read(&mut series)
        {
            tracing::warn!("{error:#}");
        }
        Self { job: job.clone(), run, series }
    }

    pub(super) fn is_finished(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.status == RunStatus::Finished)
    }

    /// Returns the state of the job: that of its run, or that in the record of the sweep before the first start.
    pub(super) fn state(&self) -> &'static str {
        match self.run.as_ref().map(|run| run.status) {
            Some(RunStatus::Finished) => "finished",
            Some(RunStatus::Running) => "running",
            Some(RunStatus::Interrupted) => "interrupted",
            Some(RunStatus::Failed) => "failed",
            Some(RunStatus::Killed) => "killed",
            Some(RunStatus::Unknown) => "unknown",
            None if self.job.state == JobState::Failed => "failed",
            None => "waiting",
        }
    }
}

/// Returns the metric that compares a run with others, and true if greater is better: the watched metric of validation, or one of
/// training.
fn metric(run: &RecordedRun, series: &Series) -> Option<(String, bool)> {
    let info = run.info.as_ref();
    let setting = |key: &str| info.and_then(|info| info.config.iter().find(|setting| setting.key == key));
    let watched = WatchedMetric {
        metric: setting("trainer.metric_for_best_model").and_then(|setting| setting.value.as_str()).map(str::to_owned),
        greater_is_better: setting("trainer.greater_is_better").and_then(|setting| setting.value.as_bool()).unwrap_or(true),
    };
    let names = series.names().filter_map(|name| Some((name, series.last(name)?.1)));
    let found = watched.value_in(names).map(|(name, _, greater)| (name.to_owned(), greater));
    let training = || TRAINING.iter().find(|(name, _)| series.last(name).is_some());
    found.or_else(|| training().map(|(name, greater)| ((*name).to_owned(), *greater)))
}

/// Returns the metric that compares a run with others, and its last value.
pub fn last_result(run: &RecordedRun) -> Option<(String, f64)> {
    let mut series = Series::default();
    Tail::new(run.metrics.clone()).read(&mut series).ok()?;
    let (name, _) = metric(run, &series)?;
    let value = series.last(&name)?.1;
    Some((name, value))
}
