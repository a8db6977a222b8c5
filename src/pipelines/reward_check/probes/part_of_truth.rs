//! The first sign of the answer in its place.

use super::super::probe::Probe;
use super::super::wins::judge;

pub(super) const PROBE: Probe = Probe {
    name: "part_of_truth_wins",
    meaning: "The model learns to write a part of the answer that is often right.",
    remedy: "Ask whether the answers are equal, not whether one is in the other.",
    judge: |study| {
        judge(study, "the beginning of the answer", false, |_, _, known, right| {
            let own = known.truths.first().filter(|truth| truth.chars().count() >= 3);
            let first: Option<String> = own.and_then(|truth| truth.chars().next()).map(String::from);
            vec![first.as_ref().and_then(|first| right.with_answer(first)), first]
        })
    },
};
