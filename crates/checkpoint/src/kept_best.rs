//! Best checkpoints by earlier metrics. A resumed run with another metric no longer compares them, but does not delete them
//! either.

use std::collections::BTreeSet;

use anyhow::Result;

use super::checkpoints::Checkpoints;
use super::folder::{BEST_FILE, KEPT_FILE};
use burnish_util::foreign;
use burnish_util::no_follow;

impl Checkpoints {
    /// Starts to track `best` (or no best checkpoint) when a run is resumed. If [`BEST_FILE`] names another checkpoint, that one
    /// is kept until the user deletes it; `max_to_keep` does not apply. Returns its step.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn keep_best(&self, best: Option<u64>) -> Result<Option<u64>> {
        let earlier = self.named_best().filter(|named| best != Some(*named));
        if let Some(step) = earlier {
            let mut kept = self.kept_steps();
            kept.insert(step);
            self.write_kept(&kept)?;
        }
        best.map_or(Ok(()), |best| self.name_best(Some(best)))?;
        Ok(earlier)
    }

    /// Returns the step that [`BEST_FILE`] names, if its checkpoint exists and is not damaged.
    pub fn named_best(&self) -> Option<u64> {
        let step = foreign::read_text(&self.dir.join(BEST_FILE), foreign::WORD).ok()?.trim().parse().ok()?;
        (!self.damaged.contains(&step) && self.is_whole(step)).then_some(step)
    }

    /// Returns the steps of the checkpoints that are kept in addition to `max_to_keep`.
    pub(super) fn kept_steps(&self) -> BTreeSet<u64> {
        let text = foreign::read_text(&self.dir.join(KEPT_FILE), foreign::SETTINGS).unwrap_or_default();
        text.lines().filter_map(|line| line.trim().parse().ok()).collect()
    }

    /// Removes a step from the kept ones, because its checkpoint was saved again and is a different one.
    pub(super) fn release(&self, step: u64) -> Result<()> {
        let mut kept = self.kept_steps();
        if kept.remove(&step) { self.write_kept(&kept) } else { Ok(()) }
    }

    fn write_kept(&self, kept: &BTreeSet<u64>) -> Result<()> {
        let lines: String = kept.iter().map(|step| format!("{step}\n")).collect();
        no_follow::write(&self.dir.join(KEPT_FILE), lines.as_bytes())
    }
}
