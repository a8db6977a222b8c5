//! Responses that grow without getting better.

use burnish_util::number::short;

use crate::check::Check;
use crate::evidence::{Evidence, beginning, ending, mean};
use crate::finding::Finding;
use crate::phase::AFTER;

pub(super) const LENGTH: Check = Check {
    name: "length",
    phases: AFTER,
    reads: "`response_length/mean`, `response/truncated_ratio`, and an accuracy",
    number: "mean length of the last three steps as a multiple of that of the first five",
    threshold: "from 2 without a better accuracy warns; fails if half of the responses are then cut, and a tenth were at first",
    source: "runs with a reward per character double their length within 8 to 42 steps; Dr. GRPO ([2503.20783](https://arxiv.org/abs/2503.20783)) finds such growth in wrong responses",
    meaning: "The reward pays for length, or the loss does; the answers do not get better.",
    remedy: "Do not pay for length; add a penalty for overlong answers; normalise the loss by tokens.",
    example,
    judge,
};

/// Returns the accuracy at the end and at the beginning.
fn accuracy(evidence: &Evidence) -> Option<(f64, f64)> {
    evidence.accuracy().map(|(_, series)| (mean(ending(&series, 2)), mean(beginning(&series, 2))))
}

fn example() -> Evidence {
    Evidence::made_up(
        30,
        &[
            ("response_length/mean", |s| 3.0 + s),
            ("response/truncated_ratio", |s| if s < 20.0 { 0.0 } else { 0.9 }),
            ("reward/acc/mean", |s| 0.7 - s / 60.0),
        ],
    )
}

fn judge(evidence: &Evidence) -> Finding {
    let series = evidence.series("response_length/mean");
    if series.len() < 6 {
        return Finding::not_applicable("fewer than six steps have a length");
    }
    let (first, last) = (mean(beginning(&series, 5)), mean(ending(&series, 3)));
    let times = last / first.max(1e-9);
    let mut sentence = format!("responses went from {} to {} tokens", short(first), short(last));
    if times < 2.0 {
        return Finding::pass(times, sentence);
    }
    let gain = accuracy(evidence);
    if let Some((after, before)) = gain {
        sentence.push_str(&format!(", the accuracy from {} to {}", short(before), short(after)));
    }
    let is_better = gain.is_some_and(|(after, before)| after > before + 0.02);
    let cut = evidence.series("response/truncated_ratio");
    let is_cut = mean(beginning(&cut, 3)) < 0.1 && mean(ending(&cut, 3)) >= 0.5;
    match (is_better, is_cut) {
        (false, true) => Finding::fail(times, format!("{sentence}, and most are now cut by the limit")),
        (false, false) | (true, true) => Finding::warn(times, sentence),
        (true, false) => Finding::pass(times, sentence),
    }
}
