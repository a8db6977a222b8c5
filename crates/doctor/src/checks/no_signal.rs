//! Groups of responses with equal scores, from which a run learns nothing.

use super::AFTER;
use crate::check::Check;
use crate::evidence::{Evidence, first_streak};
use crate::finding::Finding;

pub(super) const NO_SIGNAL: Check = Check {
    name: "no signal",
    phases: AFTER,
    reads: "`reward/zero_std_ratio`; without it `critic/advantages/max` and `min`",
    number: "share of groups whose responses have equal scores, in the last three steps",
    threshold: "from 0.95 in three steps in a row fails; warns if the scores are at their maximum",
    meaning: "All responses to a prompt get the same score, so no response is better than another, and every advantage is 0.",
    remedy: "Read responses and their scores, and try the reward on them: `trainer reward check`.",
    judge,
};

/// Steps in a row that decide.
const STEPS: usize = 3;
const SHARE: f64 = 0.95;

fn judge(evidence: &Evidence) -> Finding {
    let shares = match evidence.series("reward/zero_std_ratio") {
        shares if shares.is_empty() => equal_advantages(evidence),
        shares => shares,
    };
    let Some((_, last)) = shares.last().copied() else {
        return Finding::not_applicable("the metrics have neither shares of equal groups nor advantages");
    };
    let Some(step) = first_streak(&shares, STEPS, |share| share >= SHARE) else {
        return Finding::pass(last, "the scores of responses to one prompt differ");
    };
    let scores = evidence.series("critic/score/mean");
    let at = scores.iter().rev().find(|(at, _)| *at <= step).map_or(f64::NAN, |(_, score)| *score);
    Finding::fail(1.0, format!("since step {step} all responses to a prompt have one score; its mean is {at}"))
}

/// Returns 1 for each step whose advantages are all equal, and 0 for the others.
fn equal_advantages(evidence: &Evidence) -> Vec<(u64, f64)> {
    let (max, min) = (evidence.series("critic/advantages/max"), evidence.series("critic/advantages/min"));
    max.iter().zip(min).map(|((step, max), (_, min))| (*step, f64::from(u8::from(*max == min)))).collect()
}
