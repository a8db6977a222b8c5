//! The empty answer.

use super::super::probe::Probe;
use super::super::wins::judge;

pub(super) const PROBE: Probe = Probe {
    name: "empty_wins",
    meaning: "The model learns to end at once.",
    remedy: "Give the empty response the lowest score before anything else.",
    judge: |study| judge(study, "the empty answer", false, |_, _, _, _| vec![Some(String::new())]),
};
