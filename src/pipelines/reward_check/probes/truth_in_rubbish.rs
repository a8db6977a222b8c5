//! The ground truth as words among rubbish and other answers.

use super::super::probe::Probe;
use super::super::right::others;
use super::super::wins::judge;
use burnish_util::filler::filler;

pub(super) const PROBE: Probe = Probe {
    name: "truth_in_rubbish_wins",
    meaning: "The model learns to guess many times in one response.",
    remedy: "Look for the answer at one place, such as the last line, a box or a tag, and compare all of it.",
    judge: |study| {
        judge(study, "the truth between wrong answers and rubbish", false, |study, row, known, _| {
            let Some(own) = known.truths.first() else { return Vec::new() };
            let wrong: Vec<&str> =
                others(study.rows, row).filter_map(|other| Some(other.truths.first()?.as_str())).take(4).collect();
            let (before, after) = wrong.split_at(wrong.len() / 2);
            let part =
                |answers: &[&str]| answers.iter().map(|answer| format!("{} {answer}", filler(5))).collect::<Vec<_>>().join(" ");
            let text = format!("{} {} {own} {} {}", part(before), filler(6), part(after), filler(12));
            vec![(!after.is_empty()).then_some(text)]
        })
    },
};
