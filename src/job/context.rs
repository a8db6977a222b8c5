//! Where a run is, and whom a step tells what it does.

use super::settings::RunSettings;
use crate::run::Record;
use crate::tracking::Progress;
use crate::util::interrupt::Interrupt;

/// Where a run is, and whom a step tells what it does.
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

    /// Whether nothing is left to train.
    pub fn is_done(&self) -> bool {
        self.step == self.settings.total_steps
    }
}
