//! An entry of the registry of checks.

use super::evidence::Evidence;
use super::finding::Finding;
use super::phase::CheckPhase;

/// One thing that may be wrong with a run.
pub struct Check {
    /// Name in the output, a few words.
    pub name: &'static str,
    /// Phases in which the check can say something.
    pub phases: &'static [CheckPhase],
    /// Metrics, settings and facts that it reads.
    pub reads: &'static str,
    /// Meaning of its number.
    pub number: &'static str,
    /// Numbers at which it warns and fails.
    pub threshold: &'static str,
    /// Origin of the threshold: runs that were measured, papers, other programs, or a judgement.
    pub source: &'static str,
    /// Meaning of a warning or a failure, for a person who does not know the code.
    pub meaning: &'static str,
    /// Advice for a warning or a failure. Names in braces become settings of the library.
    pub remedy: &'static str,
    /// Made-up evidence with the fault, for the example on the page.
    pub(crate) example: fn() -> Evidence,
    pub(crate) judge: fn(&Evidence) -> Finding,
}
