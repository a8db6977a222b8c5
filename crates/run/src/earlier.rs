//! The record that another run has left in a folder, and moving it aside for a run that begins there.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::info::{INFO, RunInfo, RunState};
use super::log_file::LOG;
use super::phase::PHASE;
use super::sample::SAMPLES;
use burnish_tracking::METRICS;

/// Record of an earlier run in a folder.
#[derive(Clone, Debug)]
pub struct EarlierRun {
    info: RunInfo,
    is_finished: bool,
    /// True if the metrics file has at least one row.
    has_rows: bool,
}

impl EarlierRun {
    /// Reads the record in this folder, if any.
    pub fn read(dir: &Path) -> Option<Self> {
        let found = RunInfo::read_damaged(dir);
        let info = found.info?;
        let is_filled = |path: &Path| fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() > 0);
        let has_rows = is_filled(&info.cwd.join(&info.metrics)) || is_filled(&dir.join(METRICS));
        Some(Self { info, is_finished: found.state == Some(RunState::Finished), has_rows })
    }

    /// Returns true if the run has finished.
    pub fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// Returns true if the run has something to lose: a recorded end, or a row of metrics.
    pub fn has_results(&self) -> bool {
        self.is_finished || self.has_rows
    }

    /// Describes the run in a few words: `a finished run (3 steps, 1f3c9z2k)`.
    pub fn describe(&self) -> String {
        let state = if self.is_finished { "a finished run" } else { "a run that has not finished" };
        let steps = if self.info.step == 1 { "step" } else { "steps" };
        format!("{state} ({} {steps}, {})", self.info.step, self.info.id)
    }

    /// Moves the record into a subfolder of `dir`, and returns that folder.
    ///
    /// # Errors
    /// If a file cannot be moved.
    pub fn move_aside(&self, dir: &Path) -> Result<PathBuf> {
        let names = (1..).map(|count| if count == 1 { self.info.id.clone() } else { format!("{}-{count}", self.info.id) });
        let mut folders = names.map(|name| dir.join(format!("earlier-{name}")));
        let folder = folders.find(|folder| !folder.exists()).context("no name is free")?;
        fs::create_dir(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        for name in [METRICS, SAMPLES, LOG, PHASE, INFO] {
            let (from, to) = (dir.join(name), folder.join(name));
            if from.exists() {
                fs::rename(&from, &to).with_context(|| format!("cannot move {} to {}", from.display(), to.display()))?;
            }
        }
        Ok(folder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_moved_whole_and_its_results_are_known() {
        let dir = tempfile::tempdir().unwrap();
        assert!(EarlierRun::read(dir.path()).is_none());
        let info = RunInfo::new("ppo", "p", "e");
        info.write(dir.path()).unwrap();
        assert!(!EarlierRun::read(dir.path()).unwrap().has_results());
        fs::write(dir.path().join(METRICS), "{}\n").unwrap();
        let run = EarlierRun::read(dir.path()).unwrap();
        assert!(run.has_results() && !run.is_finished() && run.describe().contains(&info.id), "{run:?}");
        let folder = run.move_aside(dir.path()).unwrap();
        assert_eq!(fs::read_to_string(folder.join(METRICS)).unwrap(), "{}\n");
        assert_eq!(RunInfo::read(&folder).unwrap(), info);
        assert!(EarlierRun::read(dir.path()).is_none());
        RunInfo { state: RunState::Finished, ..info }.write(dir.path()).unwrap();
        let run = EarlierRun::read(dir.path()).unwrap();
        assert!(run.is_finished() && run.has_results());
        assert_ne!(run.move_aside(dir.path()).unwrap(), folder);
    }
}
