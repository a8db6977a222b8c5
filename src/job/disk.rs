//! The disk that the checkpoints of a run take.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use super::settings::RunSettings;
use burnish_config::schema::Frequency;
use burnish_util::machine::amount;
use burnish_util::platform::free_space;

/// The disk that the checkpoints of a run take.
pub(crate) struct DiskPlan {
    /// Bytes of a checkpoint.
    checkpoint_bytes: u64,
    /// Number of checkpoints that stay.
    count: u64,
    /// Words for those that stay.
    kept_words: String,
    /// Free bytes in the run's folder, if the system reports them.
    free: Option<u64>,
}

impl DiskPlan {
    /// Returns the plan of a run. `checkpoint_bytes`: the bytes of a checkpoint. `validates`: there are rows of validation.
    pub(crate) fn new(settings: &RunSettings, checkpoint_bytes: u64, validates: bool) -> Self {
        let epochs = || settings.total_steps.div_ceil(settings.steps_per_epoch.max(1));
        let due = match settings.save_freq {
            None => 0,
            Some(Frequency::Never) => 1,
            Some(Frequency::Steps(steps)) => settings.total_steps.div_ceil(steps.get()),
            Some(Frequency::AfterEachEpoch) => epochs(),
        };
        let due = settings.max_to_keep.map_or(due, |max| due.min(max as u64));
        let has_best = validates && (settings.saves_best || settings.watched.metric.is_some());
        let kept_words = match (due, has_best) {
            (0, _) => "none is saved, unless the run is interrupted (trainer.save_freq=null)".to_owned(),
            (1, false) => "the last stays".to_owned(),
            (1, true) => "the last and the best stay".to_owned(),
            (due, false) => format!("{due} stay"),
            (due, true) => format!("{due} and the best stay"),
        };
        let count = due + u64::from(has_best && due > 0);
        Self { checkpoint_bytes, count, kept_words, free: free(settings.dir()) }
    }

    /// Describes the plan in one line.
    pub(crate) fn describe(&self) -> String {
        let free = self.free.map_or(String::new(), |free| format!(", of {} free", size(free)));
        let all =
            if self.count > 1 { format!(" = {}", size(self.checkpoint_bytes.saturating_mul(self.count))) } else { String::new() };
        let refused = if self.fits() { "" } else { ": this machine would refuse this run" };
        format!("about {} each; {}{all}{free}{refused}", size(self.checkpoint_bytes), self.kept_words)
    }

    /// Returns true if a checkpoint fits, or if none is saved.
    fn fits(&self) -> bool {
        self.count == 0 || self.free.is_none_or(|free| free >= self.checkpoint_bytes)
    }

    /// Refuses a run whose first checkpoint does not fit, and warns if all checkpoints together do not fit.
    ///
    /// # Errors
    /// If not even one checkpoint fits.
    pub(crate) fn check(&self) -> Result<()> {
        let Some(free) = self.free.filter(|_| self.count > 0) else { return Ok(()) };
        ensure!(
            self.fits(),
            "trainer.default_local_dir: a checkpoint takes about {}, and {} are free there: name a folder on another disk, or save \
             nothing with trainer.save_freq=null",
            size(self.checkpoint_bytes),
            size(free)
        );
        // The next checkpoint is written before an earlier one is deleted.
        if free < self.checkpoint_bytes.saturating_mul(self.count + 1) {
            tracing::warn!(
                "the checkpoints of this run take about {} and one more while saving, and {} are free: the disk may run full",
                size(self.checkpoint_bytes.saturating_mul(self.count)),
                size(free)
            );
        }
        Ok(())
    }
}

fn size(bytes: u64) -> String {
    amount(bytes.into())
}

/// Returns the free bytes of the file system of a folder, or of the nearest folder above it that exists.
pub(crate) fn free(dir: &Path) -> Option<u64> {
    free_space(&nearest(dir)?)
}

/// Returns the folder, or the nearest folder above it that exists.
pub(crate) fn nearest(dir: &Path) -> Option<PathBuf> {
    let dir = std::path::absolute(dir).ok()?;
    dir.ancestors().find(|path| path.exists()).map(Path::to_owned)
}
