//! A tracker, and the entry under which it is found.

use anyhow::Result;

use super::{Ending, Metrics, Session, Table};

/// A destination of metrics.
pub trait Tracker: Send {
    /// Logs the metrics of one step; steps never go back.
    ///
    /// # Errors
    /// If rows are lost; the message says what is lost, and why.
    fn log(&mut self, step: u64, metrics: &Metrics) -> Result<()>;

    /// Logs a table of a step, before the metrics of that step.
    ///
    /// # Errors
    /// As for [`Self::log`].
    fn table(&mut self, step: u64, table: &Table) -> Result<()>;

    /// Called once at the end of a run, however it ends, unless the process is killed. A tracker that has to wait asks `ending`
    /// how long it may.
    ///
    /// # Errors
    /// As for [`Self::log`].
    fn finish(&mut self, ending: &Ending) -> Result<()>;
}

/// One tracker of the registry.
pub struct TrackerEntry {
    /// The name in `trainer.logger`.
    pub name: &'static str,
    /// The documentation: what the tracker writes, and where.
    pub doc: &'static str,
    /// The settings that only this tracker reads, as full keys; [`Session::setting`] returns their values.
    pub reads: &'static [&'static str],
    /// Starts the tracker. An error ends the program before training: it is meant for what the user has to correct, not for a
    /// server that is down.
    pub open: fn(&Session) -> Result<Box<dyn Tracker>>,
}
