//! The answers to other rows.

use super::super::probe::Probe;
use super::super::right::others;
use super::super::wins::judge;

pub(super) const PROBE: Probe = Probe {
    name: "other_truths_win",
    meaning: "Wrong answers score like right ones: there is nothing to learn.",
    remedy: "Compare the whole answer with the ground truth of the row.",
    judge: |study| {
        judge(study, "the answer to another row", true, |study, row, known, right| {
            let _ = known;
            others(study.rows, row).take(2).map(|other| right.with_answer(other.truths.first()?)).collect()
        })
    },
};
