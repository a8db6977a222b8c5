//! The position of a run, and the receivers of what a step reports.

use super::settings::RunSettings;
use crate::run::Record;
use crate::tracking::Progress;
use crate::util::interrupt::Interrupt;

/// The position of a run, and the receivers of what a step reports.
pub struct Context {
    pub settings: RunSettings,
    /// Steps done, or the one being made.
    pub step: u64,
    pub record: Record,
    pub progress: Progress,
    /// Asked when somebody wants the run to stop.
    pub interrupt: Interrupt,
    /// The step after which validation measures something else than before, where this process has changed that.
    pub validated_after: Option<u64>,
}

impl Context {
    pub fn total_steps(&self) -> u64 {
        self.settings.total_steps
    }

    /// True if nothing is left to train.
    pub fn is_done(&self) -> bool {
        self.step == self.settings.total_steps
    }
}
