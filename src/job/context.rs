//! The position of a run, and the receivers of what a step reports.

use super::early_stopping::Improvement;
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
    /// The validations since the last improvement, where `early_stopping` follows them.
    pub improvement: Option<Improvement>,
}

impl Context {
    pub fn total_steps(&self) -> u64 {
        self.settings.total_steps
    }

    /// True if nothing is left to train.
    pub fn is_done(&self) -> bool {
        self.step == self.settings.total_steps || self.stops_early()
    }

    /// True if the last validations were no improvement, so that the run ends before its last step.
    pub(super) fn stops_early(&self) -> bool {
        self.settings.early_stopping.is_some_and(|stopping| stopping.stops(self.improvement.as_ref()))
    }
}
