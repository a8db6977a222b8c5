//! An entry of the registry of checks.

use super::checks::CHECKS;
use super::evidence::Evidence;
use super::finding::{Finding, Verdict};

/// The time of a check, in relation to the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckPhase {
    /// The run has not started: there are settings and facts about its rows, and no metrics.
    Before,
    /// The run has metrics. It may still be active.
    After,
}

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
    /// Meaning of a warning or a failure, for a person who does not know the code.
    pub meaning: &'static str,
    /// Advice for a warning or a failure. Names in braces become settings of the library: see [`Evidence::advise`].
    pub remedy: &'static str,
    pub(crate) judge: fn(&Evidence) -> Finding,
}

/// A check with its finding.
pub struct Diagnosis {
    /// The check that was made.
    pub check: &'static Check,
    /// The result, with its advice.
    pub finding: Finding,
}

/// Makes every check, in the order of the registry. A check of the other phase does not apply. Findings of a warning or a failure
/// have advice.
pub fn diagnose(evidence: &Evidence) -> Vec<Diagnosis> {
    CHECKS.iter().map(|check| Diagnosis { check, finding: finding(check, evidence) }).collect()
}

fn finding(check: &Check, evidence: &Evidence) -> Finding {
    if !check.phases.contains(&evidence.phase) {
        return Finding::not_applicable(match evidence.phase {
            CheckPhase::Before => "reads the metrics of a run",
            CheckPhase::After => "reads the configuration before a run",
        });
    }
    let mut finding = (check.judge)(evidence);
    if matches!(finding.verdict, Verdict::Warn | Verdict::Fail) {
        let remedy = finding.remedy.as_deref().unwrap_or(check.remedy);
        finding.remedy = Some(evidence.advise(remedy));
    }
    finding
}
