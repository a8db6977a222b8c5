//! Python code in place of the answer.

use super::super::bench::OutOfTime;
use super::super::probe::Probe;
use super::super::right::Right;
use super::super::row::KnownRow;
use super::super::study::Study;
use super::super::wins;
use burnish_doctor::{Finding, Verdict};

pub(super) const PROBE: Probe = Probe {
    name: "code_in_the_answer_runs",
    meaning: "The function runs what the model writes: responses can read the truth, change scores and harm the machine.",
    remedy: "Read numbers with float() or ast.literal_eval(), never with eval(); run programs in a sandbox.",
    judge,
};

fn judge(study: &Study) -> Result<Finding, OutOfTime> {
    let named = "code that computes the answer";
    let found = wins::judge(study, named, false, |_, _, known, right| coded(known, right, "-1"))?;
    if found.verdict != Verdict::Fail {
        return Ok(found);
    }
    // Code that computes something else must not win.
    let control = wins::judge(study, named, false, |_, _, known, right| coded(known, right, "-2"))?;
    let any = || Finding::not_applicable("code that computes another number wins too");
    Ok(if control.verdict == Verdict::Fail { any() } else { found })
}

/// Returns code that reads the answer backwards with steps of `step`.
fn coded(known: &KnownRow, right: &Right, step: &str) -> Vec<Option<String>> {
    let digits = known.truths.first().filter(|truth| truth.parse::<i64>().is_ok_and(|truth| truth > 1));
    let reversed = digits.map(|digits| digits.chars().rev().collect::<String>());
    let code = reversed.filter(|reversed| Some(reversed) != digits).map(|reversed| format!("int('{reversed}'[::{step}])"));
    vec![code.as_ref().and_then(|code| right.with_answer(code)), code]
}
