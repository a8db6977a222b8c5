//! A score that rises while the accuracy falls.

use burnish_util::number::short;

use crate::alarms::Alarm;
use crate::check::Check;
use crate::evidence::{Evidence, beginning, ending, mean};
use crate::finding::{Finding, Verdict};
use crate::phase::AFTER;

pub(super) const SCORE_ACCURACY: Check = Check {
    name: "score against accuracy",
    phases: AFTER,
    reads: "`critic/score/mean`; `reward/acc/mean`, a function with `acc` or `correct` in its name, or the validation accuracy",
    number: "change of the accuracy while the score rose",
    threshold: "below -0.05 with a rank correlation below -0.5, over at least four values and ten steps, fails",
    source: "a run on a reward for the digits of the truth: the score rose from 0.4 to 0.9, and the accuracy fell from 0.57 to 0.03",
    meaning: "The reward pays for something other than right answers.",
    remedy: "Read the responses with the best scores, and try the reward on them: `trainer reward check FILE`.",
    example,
    judge,
};

pub(super) const ALARM: Alarm =
    Alarm { check: &SCORE_ACCURACY, when: "fails", rings: |_, finding| finding.verdict == Verdict::Fail };

fn example() -> Evidence {
    Evidence::made_up(30, &[("critic/score/mean", |s| 0.4 + s / 60.0), ("reward/acc/mean", |s| 0.57 - s / 60.0)])
}

fn judge(evidence: &Evidence) -> Finding {
    let Some((name, accuracy)) = evidence.accuracy() else { return Finding::not_applicable("no accuracy is measured") };
    let scores = evidence.series("critic/score/mean");
    let nearest = |step: u64| scores.iter().min_by_key(|(at, _)| at.abs_diff(step)).map(|(_, score)| *score);
    let pairs: Vec<(u64, f64, f64)> =
        accuracy.iter().filter_map(|(step, right)| Some((*step, nearest(*step)?, *right))).collect();
    let steps = pairs.last().map_or(0, |last| last.0 - pairs[0].0);
    if pairs.len() < 4 || steps < 9 {
        return Finding::not_applicable("fewer than four values or ten steps of score and accuracy");
    }
    if pairs.iter().all(|(_, score, right)| (score - right).abs() < 1e-9) {
        return Finding::pass(0.0, "the score is the accuracy");
    }
    let score: Vec<(u64, f64)> = pairs.iter().map(|(step, score, _)| (*step, *score)).collect();
    let right: Vec<(u64, f64)> = pairs.iter().map(|(step, _, right)| (*step, *right)).collect();
    let width = (pairs.len() / 4).clamp(1, 5);
    let ends = |series: &[(u64, f64)]| (mean(beginning(series, width)), mean(ending(series, width)));
    let ((score_first, score_last), (first, last)) = (ends(&score), ends(&right));
    let sentence = format!(
        "the score went from {} to {}, {name} from {} to {}",
        short(score_first),
        short(score_last),
        short(first),
        short(last)
    );
    let rose = score_last > score_first + 0.02 * score_first.abs().max(0.1);
    let is_opposed = rose && last < first - 0.05 && correlation(&ranks(&score), &ranks(&right)) < -0.5;
    if is_opposed { Finding::fail(last - first, sentence) } else { Finding::pass(last - first, sentence) }
}

/// Returns the rank of each value; equal values share their mean rank.
fn ranks(series: &[(u64, f64)]) -> Vec<f64> {
    let rank = |value: f64| {
        let below = series.iter().filter(|(_, other)| *other < value).count();
        let equal = series.iter().filter(|(_, other)| *other == value).count();
        below as f64 + (equal as f64 - 1.0) / 2.0
    };
    series.iter().map(|(_, value)| rank(*value)).collect()
}

/// Returns Pearson's correlation; 0 if one side is constant.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let centred = |values: &[f64]| {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        values.iter().map(|value| value - mean).collect::<Vec<_>>()
    };
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let (a, b) = (centred(a), centred(b));
    let size = (dot(&a, &a) * dot(&b, &b)).sqrt();
    if size > 0.0 { dot(&a, &b) / size } else { 0.0 }
}
