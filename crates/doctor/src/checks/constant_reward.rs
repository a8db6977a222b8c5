//! Scores that do not depend on the response.

use burnish_util::number::short;

use crate::alarms::Alarm;
use crate::check::Check;
use crate::evidence::{Evidence, beginning, largest, mean};
use crate::finding::{Finding, Verdict};
use crate::phase::AFTER;

pub(super) const CONSTANT_REWARD: Check = Check {
    name: "constant reward",
    phases: AFTER,
    reads: "`critic/score/max`, `min` and `mean`",
    number: "steps in a row, at the end, in which all responses to all prompts got one and the same score",
    threshold: "from 3 fails; warns if the score has risen to its best",
    source: "runs with a reward that gives one number reach 3 at step 3; a sound task with more than 8 responses a step does not",
    meaning: "The reward says nothing about the responses: it does not find the answer, or gives a default.",
    remedy: "Read some responses with their scores; `trainer reward check FILE` tries the reward function on responses.",
    example,
    judge,
};

pub(super) const ALARM: Alarm =
    Alarm { check: &CONSTANT_REWARD, when: "fails, over 5 steps in a row", rings: |_, finding| rings(finding) };

fn example() -> Evidence {
    Evidence::made_up(30, &[("critic/score/max", |_| 0.7), ("critic/score/min", |_| 0.7), ("critic/score/mean", |_| 0.7)])
}

const STEPS: usize = 3;
/// Steps in a row before the alarm, more than for the check: a hard task begins with steps in which no response is right.
/// Hits are in docs/benchmarks/alarms.md.
const ALARM_STEPS: f64 = 5.0;
/// Largest difference between equal scores, as a share of their size: rounding of f32.
const ROUNDING: f64 = 1e-6;
/// Fewest responses of a step whose equal scores say something.
const RESPONSES: f64 = 8.0;

fn rings(finding: &Finding) -> bool {
    finding.verdict == Verdict::Fail && finding.number.is_some_and(|steps| steps >= ALARM_STEPS)
}

fn judge(evidence: &Evidence) -> Finding {
    let (max, min) = (evidence.series("critic/score/max"), evidence.series("critic/score/min"));
    if max.is_empty() || max.len() != min.len() {
        return Finding::not_applicable("the metrics have no largest and smallest score");
    }
    let responses = evidence.setting_number("batch").zip(evidence.setting_number("n"));
    if responses.is_some_and(|(batch, n)| batch * n < RESPONSES) {
        return Finding::not_applicable("a step has fewer than 8 responses");
    }
    let is_same = |a: f64, b: f64| (a - b).abs() <= ROUNDING * a.abs().max(b.abs());
    let (last, score) = max[max.len() - 1];
    let rows = max.iter().zip(&min).rev();
    let same: Vec<u64> = rows
        .take_while(|((_, max), (_, min))| is_same(*max, score) && is_same(*min, score))
        .map(|((step, _), _)| *step)
        .collect();
    let (steps, count) = (same.len(), same.len() as f64);
    if steps < STEPS {
        return Finding::pass(count, "the scores of a step differ");
    }
    let since = same[steps - 1];
    let sentence = format!("all responses of steps {since} to {last} got the score {}", short(score));
    let scores = evidence.series("critic/score/mean");
    let before: Vec<(u64, f64)> = scores.iter().copied().filter(|(step, _)| *step < since).collect();
    let best = largest(&before).map(|(_, best)| best);
    let has_risen = before.len() > 1 && score > mean(beginning(&before, 2)) && best.is_some_and(|best| score >= 0.98 * best);
    match has_risen {
        true => Finding::warn(count, format!("{sentence}, the best of the run: nothing is left to learn"))
            .advise("If the task is solved, take harder prompts; if not, look at the reward."),
        false => Finding::fail(count, sentence),
    }
}
