//! A tracker, and its registry entry.

use anyhow::Result;

use super::{Ending, Metrics, StepTable, TrackedRun};

/// A destination of metrics.
pub trait Tracker: Send {
    /// Logs the metrics of one step. Steps never decrease.
    ///
    /// # Errors
    /// If rows are lost; the message names the rows and the reason.
    fn log(&mut self, step: u64, metrics: &Metrics) -> Result<()>;

    /// Logs a table of a step, before the metrics of that step.
    ///
    /// # Errors
    /// The errors of [`Self::log`].
    fn table(&mut self, step: u64, table: &StepTable) -> Result<()>;

    /// Finishes; called once at the end of a run, unless the process is killed. A tracker that has to wait asks `ending` for the
    /// time limit.
    ///
    /// # Errors
    /// The errors of [`Self::log`].
    fn finish(&mut self, ending: &Ending) -> Result<()>;
}

/// Registry entry of a tracker.
pub struct TrackerEntry {
    /// Name in `trainer.logger`.
    pub name: &'static str,
    /// Documentation: the content that the tracker writes, and the place.
    pub doc: &'static str,
    /// Settings that only this tracker reads, as full keys; [`TrackedRun::setting`] returns their values.
    pub reads: &'static [&'static str],
    /// Starts the tracker. An error ends the program before training. It is meant for problems that the user has to fix, not for
    /// a server that is down.
    pub open: fn(&TrackedRun) -> Result<Box<dyn Tracker>>,
}
