//! A score that falls, or a loss that rises.

use burnish_util::number::short;

use crate::check::Check;
use crate::evidence::{Evidence, beginning, ending, mean};
use crate::finding::Finding;
use crate::phase::AFTER;

pub(super) const SCORE_FALLS: Check = Check {
    name: "score falls",
    phases: AFTER,
    reads: "`critic/score/mean` if no score is negative; of the stages `train/loss`",
    number: "score, or inverse loss, of the last five steps as a share of that of the first five",
    threshold: "below 0.5 warns, below 0.2 fails",
    source: "runs with a rate far too high fall to 0 within two steps; PPO may dip while its critic learns",
    meaning: "The run makes the model worse.",
    remedy: "Divide {lr} by ten and start from a checkpoint before the fall.",
    example,
    judge,
};

fn example() -> Evidence {
    Evidence::made_up(30, &[("critic/score/mean", |s| if s < 6.0 { 0.6 } else { 0.05 })])
}

fn judge(evidence: &Evidence) -> Finding {
    let scores = evidence.series("critic/score/mean");
    let is_score = !scores.is_empty();
    let series = if is_score { scores } else { evidence.series("train/loss") };
    if series.len() < 10 {
        return Finding::not_applicable("fewer than ten steps have a score or a loss");
    }
    let lowest = |name: &str| evidence.series(name).iter().map(|(_, value)| *value).fold(f64::INFINITY, f64::min);
    if series.iter().any(|(_, value)| *value < 0.0) || (is_score && lowest("critic/score/min") < 0.0) {
        return Finding::not_applicable("scores below 0 have no share");
    }
    let (first, last) = (mean(beginning(&series, if is_score { 3 } else { 5 })), mean(ending(&series, 5)));
    let (whole, rest) = if is_score { (first, last) } else { (last, first) };
    if whole < 0.02 {
        return Finding::not_applicable("the score is near 0 from the beginning");
    }
    let what = if is_score { "score" } else { "loss" };
    let share = rest / whole;
    let sentence = format!("the {what} went from {} to {}", short(first), short(last));
    match share {
        _ if share < 0.2 => Finding::fail(share, sentence),
        _ if share < 0.5 => Finding::warn(share, sentence),
        _ => Finding::pass(share, sentence),
    }
}
