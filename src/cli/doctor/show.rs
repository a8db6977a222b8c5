//! Findings as text and as JSON.

use super::explain;
use burnish_doctor::{Check, Diagnosis, Evidence, RaisedAlarm, Verdict};
use burnish_util::json_number;
use serde_json::{Value, json};

/// Returns the object of a check. `alarm` is the step at which its alarm was or would have been raised.
pub(super) fn row(one: &Diagnosis, alarms: &[RaisedAlarm]) -> Value {
    let alarm = alarms.iter().find(|alarm| alarm.alarm.check.name == one.check.name);
    json!({
        "alarm": alarm.map(|alarm| alarm.step),
        "check": one.check.name,
        "explain": one.check.id(),
        "verdict": one.finding.verdict.name(),
        "number": one.finding.number.map(json_number::to_value),
        "means": one.check.number,
        "threshold": one.check.threshold,
        "sentence": one.finding.sentence,
        "remedy": one.finding.remedy,
    })
}

/// Returns the text: what was read, a paragraph for each failure and warning, and a line for the rest and for the alarms.
pub(super) fn text(evidence: &Evidence, findings: &[Diagnosis], alarms: &[RaisedAlarm]) -> String {
    let mut text: String = evidence.sources.iter().map(|source| format!("{source}\n")).collect();
    text.extend(evidence.facts.plan.shown.iter().map(|row| format!("{}\n", row.text())));
    for verdict in [Verdict::Fail, Verdict::Warn] {
        for one in of(findings, verdict) {
            let remedy = one.finding.remedy.as_deref().unwrap_or_default();
            text.push_str(&format!("\n{:4}  {}: {}\n      → {remedy}\n", verdict.name(), one.check.name, one.finding.sentence));
        }
    }
    let objections: Vec<&Check> =
        [Verdict::Fail, Verdict::Warn].into_iter().flat_map(|verdict| of(findings, verdict).map(|one| one.check)).collect();
    if !objections.is_empty() {
        text.push_str(&format!("\nMore about them: {}\n", explain::command(&objections)));
    }
    for (verdict, title) in [(Verdict::Pass, "pass"), (Verdict::NotApplicable, "not applicable")] {
        let names: Vec<&str> = of(findings, verdict).map(|one| one.check.name).collect();
        if !names.is_empty() {
            text.push_str(&format!("\n{title} ({}): {}\n", names.len(), names.join(", ")));
        }
    }
    if !alarms.is_empty() {
        let steps = alarms.iter().map(|one| format!("{} at step {}", one.alarm.check.name, one.step));
        text.push_str(&format!("\nalarms while the run trains: {}\n", steps.collect::<Vec<_>>().join(", ")));
    }
    text
}

fn of(findings: &[Diagnosis], verdict: Verdict) -> impl Iterator<Item = &Diagnosis> {
    findings.iter().filter(move |one| one.finding.verdict == verdict)
}
