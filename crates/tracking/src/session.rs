//! Facts about a run that trackers may use.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use anyhow::{Context, Result};
use serde_json::Value;

use super::Progress;
use burnish_util::fs::read_json;
use burnish_util::no_follow;

/// A run, as its trackers see it.
#[derive(Clone, Debug)]
pub struct TrackedRun {
    /// `trainer.project_name`.
    pub project: String,
    /// `trainer.experiment_name`.
    pub experiment: String,
    /// Eight digits and lower-case letters; a resumed run keeps its id.
    pub run_id: String,
    /// `trainer.default_local_dir`.
    pub dir: PathBuf,
    /// Step of the checkpoint that the run resumes from; `None` for a fresh run.
    pub resumed_step: Option<u64>,
    /// Number of the last step.
    pub total_steps: u64,
    /// Time at which this process began.
    pub started: SystemTime,
    /// Resolved configuration.
    pub config: Value,
    /// Python interpreter.
    pub python: String,
    /// Progress bar; lines are printed through it, so that they do not tear it.
    pub progress: Progress,
}

/// File of short texts that trackers keep across resumes.
const MEMORY: &str = "trackers.json";

impl TrackedRun {
    /// Removes the texts that an earlier run remembered in this folder, if this run is fresh.
    pub(super) fn begin(&self) -> Result<()> {
        if self.resumed_step.is_some() {
            return Ok(());
        }
        let path = self.dir.join(MEMORY);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot remove {}", path.display()))
            }
            _ => Ok(()),
        }
    }

    /// Returns a text setting by its dotted key; `None` if it is unset or the configuration has no such key.
    pub fn setting(&self, key: &str) -> Option<&str> {
        key.split('.').try_fold(&self.config, |value, part| value.get(part))?.as_str()
    }

    /// Returns the text that [`Self::remember`] last stored under this name, in this process or an earlier one of the same run.
    pub fn remembered(&self, purpose: &str) -> Option<String> {
        self.memory().remove(purpose)
    }

    /// Stores a short text in the run's folder, such as the id that a server gave to the run.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn remember(&self, purpose: &str, value: &str) -> Result<()> {
        // Trackers call this from their own threads.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let mut memory = self.memory();
        memory.insert(purpose.to_owned(), value.to_owned());
        no_follow::write(&self.dir.join(MEMORY), &serde_json::to_vec_pretty(&memory)?)
    }

    fn memory(&self) -> BTreeMap<String, String> {
        read_json(&self.dir.join(MEMORY)).unwrap_or_default()
    }

    /// Creates the session of a run of ten steps in a folder, for tests.
    pub fn in_folder(dir: PathBuf, resumed_step: Option<u64>) -> Self {
        let [project, experiment, run_id] = ["project", "experiment", "0123abcd"].map(String::from);
        Self {
            project,
            experiment,
            run_id,
            dir,
            resumed_step,
            total_steps: 10,
            started: SystemTime::now(),
            config: serde_json::json!({"trainer": {"seed": 1}}),
            python: "python3".to_owned(),
            progress: Progress::hidden(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_lasts_until_a_fresh_run() {
        let dir = tempfile::tempdir().unwrap();
        let fresh = TrackedRun::in_folder(dir.path().into(), None);
        fresh.begin().unwrap();
        assert_eq!(fresh.remembered("id"), None);
        fresh.remember("id", "one").unwrap();
        fresh.remember("other", "two").unwrap();
        let resumed = TrackedRun { resumed_step: Some(3), ..fresh.clone() };
        resumed.begin().unwrap();
        assert_eq!(resumed.remembered("id").as_deref(), Some("one"));
        fresh.begin().unwrap();
        assert_eq!(fresh.remembered("other"), None);
    }
}
