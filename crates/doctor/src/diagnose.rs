//! Makes all checks.

use super::check::Check;
use super::checks::CHECKS;
use super::evidence::Evidence;
use super::finding::{Finding, Verdict};

/// A check with its finding.
pub struct Diagnosis {
    /// The check that was made.
    pub check: &'static Check,
    /// The result, with its advice.
    pub finding: Finding,
}

/// Makes every check of the evidence's phase, in the order of the registry. Findings of a warning or a failure have advice.
pub fn diagnose(evidence: &Evidence) -> Vec<Diagnosis> {
    let checks = CHECKS.iter().filter(|check| check.phases.contains(&evidence.phase));
    checks.map(|check| Diagnosis { check, finding: finding(check, evidence) }).collect()
}

/// Makes a check. A warning or a failure gets the advice of the check, if it has no other.
pub(crate) fn finding(check: &Check, evidence: &Evidence) -> Finding {
    let mut finding = (check.judge)(evidence);
    if matches!(finding.verdict, Verdict::Warn | Verdict::Fail) {
        let remedy = finding.remedy.as_deref().unwrap_or(check.remedy);
        finding.remedy = Some(evidence.advise(remedy));
    }
    finding
}
