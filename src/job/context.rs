//! The position of a run, and the receivers of a step's reports.

use anyhow::Result;

use super::early_stopping::Improvement;
use super::probe::StepProbe;
use super::settings::RunSettings;
use burnish_distributed::Ranks;
use burnish_run::Record;
use burnish_tracking::Progress;
use burnish_util::interrupt::{Interrupt, Interrupted};

/// The position of a run, and the receivers of a step's reports.
pub struct Context {
    pub settings: RunSettings,
    /// The ranks that train together.
    pub ranks: Ranks,
    /// Number of steps done, or of the current step.
    pub step: u64,
    pub record: Record,
    pub progress: Progress,
    /// Probe of this step, for `trainer replay`; `None` in a run.
    pub probe: Option<StepProbe>,
    /// Tells if this process received a stop request; see `Self::stop_requested`.
    pub interrupt: Interrupt,
    /// Step after which validation measures something else, if this process has changed that.
    pub validated_after: Option<u64>,
    /// Validations since the last improvement, if `early_stopping` is set.
    pub improvement: Option<Improvement>,
}

impl Context {
    /// Returns true on all ranks if one of them received a stop request. Collective.
    pub(crate) fn stop_requested(&self) -> bool {
        self.ranks.any(self.interrupt.is_requested())
    }

    /// Abandons a step that has not updated anything yet; the run loop catches the error. Collective.
    ///
    /// # Errors
    /// [`Interrupted`], after a stop request.
    pub(crate) fn check_interrupt(&self) -> Result<()> {
        if self.stop_requested() { Err(Interrupted::unfinished().into()) } else { Ok(()) }
    }

    pub fn total_steps(&self) -> u64 {
        self.settings.total_steps
    }

    /// Returns true if no step is left to train.
    pub fn is_done(&self) -> bool {
        self.step == self.settings.total_steps || self.stops_early()
    }

    /// Returns true if the run ends before its last step because validations stopped improving.
    pub(super) fn stops_early(&self) -> bool {
        self.settings.early_stopping.is_some_and(|stopping| stopping.stops(self.improvement.as_ref()))
    }
}
