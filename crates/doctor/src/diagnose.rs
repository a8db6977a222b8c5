//! Makes all checks.

use super::check::Check;
use super::checks::CHECKS;
use super::evidence::Evidence;
use super::finding::{Finding, Verdict};
use super::phase::CheckPhase;

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
