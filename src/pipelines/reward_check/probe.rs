//! An entry of the registry of probes.

use super::bench::OutOfTime;
use super::study::Study;
use burnish_doctor::Finding;

/// One weakness that a reward function may have.
pub(crate) struct Probe {
    /// Name of the finding.
    pub(crate) name: &'static str,
    /// Consequence of a warning or a failure in training.
    pub(crate) meaning: &'static str,
    /// Advice for a warning or a failure.
    pub(crate) remedy: &'static str,
    pub(super) judge: fn(&Study) -> Result<Finding, OutOfTime>,
}
