//! Which checkpoint a run continues from.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::{Checkpoints, Manifest, TRACKER_FILE, step_of, verify};

/// `trainer.resume_mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumeMode {
    /// From the latest checkpoint of the run's own directory, if there is one.
    Auto,
    /// Never: start from step 0.
    Disable,
    /// From `trainer.resume_from_path`.
    Path,
}

impl Checkpoints {
    /// The checkpoint to resume from, fully [verified](verify), or `None` to start from step 0. A damaged one is an
    /// error: whether to fall back to an earlier one is for the user to decide.
    pub fn resolve(&self, mode: ResumeMode, resume_from_path: Option<&Path>) -> Result<Option<PathBuf>> {
        let dir = match (mode, resume_from_path) {
            (ResumeMode::Disable, _) => None,
            (ResumeMode::Auto, _) => self.latest()?.map(|(_, dir)| dir),
            (ResumeMode::Path, None) => bail!("resume_mode is resume_path, but resume_from_path is not set"),
            (ResumeMode::Path, Some(path)) if !path.is_dir() => {
                bail!("resume_from_path: there is no directory '{}'", path.display())
            }
            (ResumeMode::Path, Some(path)) => {
                step_of(path).context("resume_from_path")?;
                Some(path.to_path_buf())
            }
        };
        if let Some(dir) = &dir {
            verify(dir).with_context(|| {
                format!(
                    "cannot resume from {}; delete it to resume from the one before, or choose another with resume_from_path",
                    dir.display()
                )
            })?;
        }
        Ok(dir)
    }

    /// The checkpoint the tracker file names. If that is missing or incomplete (sizes, not checksums), the complete one
    /// that was saved last, with a warning. `None` if nothing was ever saved; an error if something was and all of it is
    /// gone.
    pub fn latest(&self) -> Result<Option<(u64, PathBuf)>> {
        let tracker = self.dir.join(TRACKER_FILE);
        let named = match fs::read_to_string(&tracker) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", tracker.display())),
        };
        let problem = match named.as_deref().map(|text| text.trim().parse::<u64>()) {
            None => format!("{} does not exist", tracker.display()),
            Some(Err(_)) => format!("{} does not hold a step", tracker.display()),
            Some(Ok(step)) => match Manifest::read_complete(&self.path(step)) {
                Ok(_) => return Ok(Some((step, self.path(step)))),
                Err(error) => format!("{} names step {step}, but {error:#}", tracker.display()),
            },
        };
        match self.newest_first()?.into_iter().next() {
            Some(newest) => {
                tracing::warn!("{problem}; falling back to {}", newest.dir.display());
                Ok(Some((newest.step, newest.dir)))
            }
            None if named.is_none() => Ok(None),
            None => bail!("{problem}, and no other checkpoint there is complete; to start over, set resume_mode to disable"),
        }
    }
}
