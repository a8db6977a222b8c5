//! The position of a run, and the receivers of what a step reports.

use anyhow::Result;

use super::early_stopping::Improvement;
use super::settings::RunSettings;
use burnish_distributed::Ranks;
use burnish_run::Record;
use burnish_tracking::Progress;
use burnish_util::interrupt::{Interrupt, Interrupted};

/// The position of a run, and the receivers of what a step reports.
pub struct Context {
    pub settings: RunSettings,
    /// The processes that train together.
    pub ranks: Ranks,
    /// Steps done, or the one being made.
    pub step: u64,
    pub record: Record,
    pub progress: Progress,
    /// Asked when somebody wants this process to stop; see [`Self::asked_to_stop`].
    pub interrupt: Interrupt,
    /// The step after which validation measures something else than before, where this process has changed that.
    pub validated_after: Option<u64>,
    /// The validations since the last improvement, where `early_stopping` follows them.
    pub improvement: Option<Improvement>,
}

impl Context {
    /// True on all ranks if somebody wants one of them to stop. Collective.
    pub fn asked_to_stop(&self) -> bool {
        self.ranks.any(self.interrupt.asked())
    }

    /// Abandons a step that has changed nothing yet, by an error that the caller that began the step catches. Collective.
    ///
    /// # Errors
    /// [`Interrupted`], if the run was asked to stop.
    pub fn check_interrupt(&self) -> Result<()> {
        if self.asked_to_stop() { Err(Interrupted::unfinished().into()) } else { Ok(()) }
    }

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
