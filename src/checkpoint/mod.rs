//! Checkpoints on disk, in verl's layout: what a directory of them looks like, which one to resume from, which to delete.
//!
//! ```text
//! <dir>/global_step_20/{manifest.json, actor/…, data.json, …}   whole, or not there
//! <dir>/latest_checkpointed_iteration.txt                       "20", written once the directory is in place
//! ```
//!
//! What goes into a checkpoint is the caller's business: [`Checkpoints::save`] hands it an empty directory.

mod manifest;
mod resume;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::util::fs::{AtomicDir, remove_dir, sweep, write_atomic};
pub use manifest::{FileEntry, Manifest};
pub use resume::ResumeMode;

/// verl's name of the file that holds the step of the last checkpoint.
pub const TRACKER_FILE: &str = "latest_checkpointed_iteration.txt";
const STEP_PREFIX: &str = "global_step_";

/// The checkpoints of one training run (and of the earlier runs it resumed from) in one directory.
#[derive(Debug)]
pub struct Checkpoints {
    dir: PathBuf,
    max_to_keep: Option<usize>,
}

impl Checkpoints {
    /// Opens `dir` (`trainer.default_local_dir`), creating it if needed and clearing what a killed run left half-written.
    /// `max_to_keep`: how many checkpoints to keep, as in verl; `None` and 0 keep all.
    pub fn new(dir: impl Into<PathBuf>, max_to_keep: Option<usize>) -> Result<Self> {
        let dir = dir.into();
        fs::create_dir_all(&dir).with_context(|| format!("cannot create the checkpoint directory {}", dir.display()))?;
        sweep(&dir)?;
        Ok(Self { dir, max_to_keep: max_to_keep.filter(|keep| *keep > 0) })
    }

    /// `dir` as it is: nothing is created or cleared.
    pub fn look(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), max_to_keep: None }
    }

    /// The directory all checkpoints are in.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Where the checkpoint of `step` is or would be.
    pub fn path(&self, step: u64) -> PathBuf {
        self.dir.join(format!("{STEP_PREFIX}{step}"))
    }

    /// Saves a checkpoint: `write` fills a staging directory, which then gets its manifest and appears under its final
    /// name in one rename, replacing an earlier checkpoint of the same step. Only then does the tracker file move on, and
    /// only then are old checkpoints deleted. If `write` fails, nothing has changed.
    pub fn save(&self, step: u64, write: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
        let target = self.path(step);
        let save = || {
            let staged = AtomicDir::stage(&target)?;
            write(staged.path())?;
            let sequence = self.newest_first()?.first().map_or(1, |newest| newest.sequence + 1);
            Manifest::describe(staged.path(), step, sequence)?.write(staged.path())?;
            staged.commit()?;
            write_atomic(&self.dir.join(TRACKER_FILE), step.to_string().as_bytes())
        };
        save().with_context(|| format!("cannot save the checkpoint of step {step}"))?;
        self.delete_old(step)?;
        Ok(target)
    }

    /// Keeps the `max_to_keep` checkpoints saved last, whichever run saved them and whatever their steps. Directories
    /// without a manifest are not ours to delete.
    fn delete_old(&self, just_saved: u64) -> Result<()> {
        let Some(keep) = self.max_to_keep else { return Ok(()) };
        for old in self.newest_first()?.into_iter().skip(keep).filter(|old| old.step != just_saved) {
            remove_dir(&old.dir)?;
        }
        Ok(())
    }

    /// All checkpoints with a readable manifest and every file at its full size, the one saved last first.
    fn newest_first(&self) -> Result<Vec<Saved>> {
        let mut found = Vec::new();
        let cannot_read = || format!("cannot read {}", self.dir.display());
        for entry in fs::read_dir(&self.dir).with_context(cannot_read)? {
            let dir = entry.with_context(cannot_read)?.path();
            let Ok(step) = step_of(&dir) else { continue };
            if let Ok(manifest) = Manifest::read_complete(&dir) {
                found.push(Saved { sequence: manifest.sequence, step, dir });
            }
        }
        found.sort_by_key(|saved| std::cmp::Reverse((saved.sequence, saved.step)));
        Ok(found)
    }
}

/// A complete checkpoint.
#[derive(Debug)]
struct Saved {
    sequence: u64,
    step: u64,
    dir: PathBuf,
}

/// The step of a checkpoint path, whose last component must be `global_step_<N>`.
pub fn step_of(path: &Path) -> Result<u64> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match name.strip_prefix(STEP_PREFIX).and_then(|step| step.parse().ok()) {
        Some(step) => Ok(step),
        None => bail!("'{}' is not a checkpoint: its last component must be {STEP_PREFIX}<N>", path.display()),
    }
}

/// Refuses a checkpoint that is truncated or altered, with the name of the file at fault. Reads every byte.
pub fn verify(dir: &Path) -> Result<Manifest> {
    let manifest = Manifest::read_complete(dir)?;
    manifest.check_contents(dir)?;
    Ok(manifest)
}
