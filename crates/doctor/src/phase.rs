//! The times at which checks are made.

/// The time of a check, in relation to the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckPhase {
    /// The run has not started: there are settings and facts about its rows, and no metrics.
    Before,
    /// The run has metrics. It may still be active.
    After,
}

/// Phases of a check that reads settings or facts about rows: they are known before a run, and some after it.
pub(crate) const ALWAYS: &[CheckPhase] = &[CheckPhase::Before, CheckPhase::After];
/// Phases of a check that reads what is only known before a run.
pub(crate) const BEFORE: &[CheckPhase] = &[CheckPhase::Before];
/// Phases of a check that reads metrics.
pub(crate) const AFTER: &[CheckPhase] = &[CheckPhase::After];
