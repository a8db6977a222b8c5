//! Python code in place of the answer.

use super::super::probe::Probe;
use super::super::wins::judge;

pub(super) const PROBE: Probe = Probe {
    name: "code_in_the_answer_runs",
    meaning: "The function runs what the model writes: responses can read the truth, change scores and harm the machine.",
    remedy: "Read numbers with float() or ast.literal_eval(), never with eval(); run programs in a sandbox.",
    judge: |study| {
        judge(study, "code that computes the answer", false, |_, _, known, right| {
            let digits = known.truths.first().filter(|truth| truth.parse::<i64>().is_ok_and(|truth| truth > 1));
            let reversed = digits.map(|digits| digits.chars().rev().collect::<String>());
            let code = reversed.filter(|reversed| Some(reversed) != digits).map(|reversed| format!("int('{reversed}'[::-1])"));
            vec![code.as_ref().and_then(|code| right.with_answer(code)), code]
        })
    },
};
