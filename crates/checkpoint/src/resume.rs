//! Choice of the checkpoint to resume from.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::checkpoints::{Checkpoints, inside, verify};
use super::folder::{TRACKER_FILE, step_of};
use burnish_util::foreign;

/// Values of `trainer.resume_mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumeMode {
    /// Resume from the latest checkpoint in the run's own directory, if there is one.
    Auto,
    /// Never resume: start from step 0.
    Disable,
    /// Resume from `trainer.resume_from_path`.
    Path,
}

impl Checkpoints {
    /// Returns the checkpoint to resume from, fully [verified](verify), or `None` to start from step 0. A damaged checkpoint is
    /// an error if its path was given; otherwise the one before it is used.
    pub fn resolve(&mut self, mode: ResumeMode, resume_from_path: Option<&Path>) -> Result<Option<PathBuf>> {
        match (mode, resume_from_path) {
            (ResumeMode::Disable, _) => Ok(None),
            (ResumeMode::Auto, _) => Ok(self.latest()?.map(|(_, dir)| dir)),
            (ResumeMode::Path, None) => bail!("trainer.resume_mode is resume_path, but trainer.resume_from_path is not set"),
            (ResumeMode::Path, Some(path)) if !path.is_dir() => {
                bail!("trainer.resume_from_path: there is no directory '{}'", path.display())
            }
            (ResumeMode::Path, Some(path)) => {
                if let (Err(_), Some(inside)) = (step_of(path), inside(path)) {
                    bail!("trainer.resume_from_path: {inside}");
                }
                step_of(path).context("trainer.resume_from_path")?;
                verify(path).with_context(|| {
                    format!("cannot resume from {}; choose another with trainer.resume_from_path", path.display())
                })?;
                Ok(Some(path.to_path_buf()))
            }
        }
    }

    /// Returns the folder of the checkpoint that a run would resume from, without verifying it: the one that the tracker file
    /// names, or else the one saved last.
    pub fn newest(&self) -> Option<PathBuf> {
        let tracked = foreign::read_text(&self.dir.join(TRACKER_FILE), foreign::WORD).ok();
        let tracked = tracked.and_then(|text| Some(self.path(text.trim().parse().ok()?))).filter(|dir| dir.is_dir());
        tracked.or_else(|| Some(self.newest_first().ok()?.into_iter().next()?.dir))
    }

    /// Returns the checkpoint that the tracker file names. If that one is missing or damaged, returns the undamaged one saved
    /// last, with a warning for each skipped one. `None` if nothing was ever saved.
    ///
    /// # Errors
    /// If checkpoints were saved but all of them are damaged.
    pub fn latest(&mut self) -> Result<Option<(u64, PathBuf)>> {
        let tracker = self.dir.join(TRACKER_FILE);
        let mut problems = Vec::new();
        let tracked = match foreign::is_there(&tracker)? {
            true => {
                let text = String::from_utf8(foreign::read(&tracker, foreign::WORD)?).unwrap_or_default();
                let step = text.trim().parse::<u64>().ok();
                problems.extend(step.is_none().then(|| format!("{} does not hold a step", tracker.display())));
                step
            }
            false => {
                problems.push(format!("{} does not exist", tracker.display()));
                None
            }
        };
        let known = self.newest_first()?.into_iter().map(|saved| saved.step);
        let mut steps: Vec<u64> = tracked.into_iter().chain(known).collect();
        // Folders without a readable manifest come last, so that the error names them.
        steps.extend(self.folders()?.into_iter().map(|(step, _)| step));
        if steps.is_empty() && !tracker.exists() {
            return Ok(None);
        }
        let mut tried = Vec::new();
        for step in steps {
            if tried.contains(&step) {
                continue;
            }
            tried.push(step);
            let dir = self.path(step);
            match verify(&dir) {
                Ok(_) => {
                    problems.iter().for_each(|problem| tracing::warn!("{problem}"));
                    if !problems.is_empty() {
                        tracing::warn!("resuming from {} instead", dir.display());
                    }
                    return Ok(Some((step, dir)));
                }
                Err(error) => {
                    self.damaged.insert(step);
                    let named =
                        if tracked == Some(step) { format!(", which {} names,", tracker.display()) } else { String::new() };
                    problems.push(format!("the checkpoint of step {step}{named} is skipped: {error:#}"));
                }
            }
        }
        bail!(
            "no checkpoint in {} is whole: {}; to start over, set trainer.resume_mode=disable or another \
             trainer.default_local_dir",
            self.dir.display(),
            problems.join("; ")
        )
    }
}
