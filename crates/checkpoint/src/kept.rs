//! The best checkpoints of earlier measures: what a resumed run no longer compares, it does not delete either.

use std::collections::BTreeSet;

use anyhow::Result;

use super::checkpoints::Checkpoints;
use super::folder::{BEST_FILE, KEPT_FILE};
use burnish_util::foreign;
use burnish_util::fs::write_atomic;

impl Checkpoints {
    /// Begins to follow `best`, or nothing, on resuming. The checkpoint that [`BEST_FILE`] names, if that is another one, is kept until
    /// somebody else deletes it, whatever the number of checkpoints to keep is. Returns its step.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn keep_best(&self, best: Option<u64>) -> Result<Option<u64>> {
        let earlier = self.named_best().filter(|named| best != Some(*named));
        if let Some(step) = earlier {
            let mut kept = self.kept();
            kept.insert(step);
            self.write_kept(&kept)?;
        }
        best.map_or(Ok(()), |best| self.name_best(Some(best)))?;
        Ok(earlier)
    }

    /// Returns the step that [`BEST_FILE`] names, if its checkpoint is there and not damaged.
    pub(super) fn named_best(&self) -> Option<u64> {
        let step = foreign::read_text(&self.dir.join(BEST_FILE), foreign::WORD).ok()?.trim().parse().ok()?;
        (!self.damaged.contains(&step) && self.is_whole(step)).then_some(step)
    }

    /// Returns the steps of the checkpoints that are kept whatever the number of checkpoints to keep is.
    pub(super) fn kept(&self) -> BTreeSet<u64> {
        let text = foreign::read_text(&self.dir.join(KEPT_FILE), foreign::SETTINGS).unwrap_or_default();
        text.lines().filter_map(|line| line.trim().parse().ok()).collect()
    }

    /// A checkpoint that is saved again is another one, and no longer kept.
    pub(super) fn release(&self, step: u64) -> Result<()> {
        let mut kept = self.kept();
        if kept.remove(&step) { self.write_kept(&kept) } else { Ok(()) }
    }

    fn write_kept(&self, kept: &BTreeSet<u64>) -> Result<()> {
        let lines: String = kept.iter().map(|step| format!("{step}\n")).collect();
        write_atomic(&self.dir.join(KEPT_FILE), lines.as_bytes())
    }
}
