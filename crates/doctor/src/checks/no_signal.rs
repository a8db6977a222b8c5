//! Groups of responses with equal scores, from which a run learns nothing.

use burnish_util::number::short;

use crate::alarms::Alarm;
use crate::check::Check;
use crate::evidence::{Evidence, beginning, ending, first_streak, largest, last_streak, mean};
use crate::finding::{Finding, Verdict};
use crate::phase::AFTER;

pub(super) const NO_SIGNAL: Check = Check {
    name: "no signal",
    phases: AFTER,
    reads: "`reward/zero_std_ratio`; without it `critic/advantages/max` and `min`; `actor/grad_norm`, `critic/score/mean`",
    number: "mean share of groups whose responses have equal scores, of the last ten steps",
    threshold: "from 0.95 in the last three steps, or on average, fails; warns if the score has risen to its best, or in the past",
    source: "15 runs with injected faults reach 1 at step 3; 41 sound ones stay at 0.2 to 0.8; DAPO ([2503.14476](https://arxiv.org/abs/2503.14476)) drops such groups",
    meaning: "All responses to a prompt get the same score, so no response is better than another, and every advantage is 0.",
    remedy: "Read some responses with their scores; `trainer reward check FILE` tries the reward function on responses.",
    example,
    judge,
};

pub(super) const ALARM: Alarm = Alarm {
    check: &NO_SIGNAL,
    when: "fails, from 0.95 on average over 10 steps",
    rings: |evidence, finding| {
        let is_equal = finding.number.is_some_and(|share| share >= SHARE);
        finding.verdict == Verdict::Fail && is_equal && shares(evidence).len() >= WINDOW
    },
};

fn example() -> Evidence {
    Evidence::made_up(
        30,
        &[
            ("reward/zero_std_ratio", |s| if s < 3.0 { 0.4 } else { 1.0 }),
            ("critic/score/mean", |s| if s < 3.0 { 0.5 } else { 0.0 }),
        ],
    )
}

/// Steps in a row that decide.
const STEPS: usize = 3;
const SHARE: f64 = 0.95;
/// Steps whose mean decides, and which the alarm needs: with ten, it rang in none of 41 sound runs on the small tasks of
/// `data/`, and with three in one whose reward was half solved.
const WINDOW: usize = 10;
/// Estimators that learn from the rewards of each function, which the score sums up.
const OF_NAMED_REWARDS: &[&str] = &["gdpo", "trl_gdpo"];

fn judge(evidence: &Evidence) -> Finding {
    let shares = shares(evidence);
    if shares.is_empty() {
        return Finding::not_applicable("the metrics have neither shares of equal groups nor advantages");
    }
    let share = mean(ending(&shares, WINDOW));
    let is_equal = |share: f64| share >= SHARE;
    let Some(first) = first_streak(&shares, STEPS, is_equal) else {
        return Finding::pass(share, format!("{} % of the last groups have equal scores", short((100.0 * share).round())));
    };
    let Some(since) = last_streak(&shares, STEPS, is_equal).or_else(|| (share >= SHARE).then_some(first)) else {
        return Finding::warn(share, format!("steps {first} to {} taught nothing; later steps did", first + STEPS as u64 - 1));
    };
    let scores = evidence.series("critic/score/mean");
    let score = mean(ending(&scores, STEPS));
    if last_streak(&scored_shares(evidence), STEPS, is_equal).is_none() && gradient(evidence, since) == Some(0.0) {
        return Finding::fail(share, format!("since step {since} the gradient of the policy is 0"));
    }
    let what = format!("since step {since} all responses to a prompt have the same score");
    let risen = best_since_start(&scores, since).is_some_and(|before| score > before.0 && score >= 0.98 * before.1);
    if risen {
        let sentence = format!("{what}, and the mean score {} is the best of the run: nothing is left to learn", short(score));
        return Finding::warn(share, sentence).advise("If the task is solved, take harder prompts; if not, look at the reward.");
    }
    let which = match score {
        _ if scores.is_empty() => String::new(),
        0.0 => ", namely 0".to_owned(),
        _ => format!(" (mean {})", short(score)),
    };
    Finding::fail(share, format!("{what}{which}: every advantage is 0"))
}

/// Returns the mean of the first scores and the best score of the steps with a signal, if there were some.
fn best_since_start(scores: &[(u64, f64)], since: u64) -> Option<(f64, f64)> {
    let before: Vec<(u64, f64)> = scores.iter().copied().filter(|(step, _)| *step < since).collect();
    Some((mean(beginning(&before, 2)), largest(&before)?.1)).filter(|_| before.len() > 1)
}

/// Returns the share of groups without a signal at each step: all of them if the gradient is 0.
fn shares(evidence: &Evidence) -> Vec<(u64, f64)> {
    let with_gradient = |(step, share)| (step, if gradient(evidence, step) == Some(0.0) { 1.0 } else { share });
    scored_shares(evidence).into_iter().map(with_gradient).collect()
}

fn gradient(evidence: &Evidence, step: u64) -> Option<f64> {
    let row = evidence.rows.binary_search_by_key(&step, |row| row.step).ok()?;
    evidence.rows[row].values.get("actor/grad_norm").copied()
}

/// Returns the share of groups whose scores, or else advantages, are equal. Named rewards and rewards of turns may differ where
/// scores do not.
fn scored_shares(evidence: &Evidence) -> Vec<(u64, f64)> {
    let estimator = evidence.setting("algorithm.adv_estimator").and_then(serde_json::Value::as_str);
    let has_others =
        estimator.is_some_and(|name| OF_NAMED_REWARDS.contains(&name)) || !evidence.series("agent/turn_rewards/mean").is_empty();
    match evidence.series("reward/zero_std_ratio") {
        shares if shares.is_empty() || has_others => equal_advantages(evidence),
        shares => shares,
    }
}

/// Returns 1 for each step whose advantages are all equal, and 0 for the others.
fn equal_advantages(evidence: &Evidence) -> Vec<(u64, f64)> {
    let (max, min) = (evidence.series("critic/advantages/max"), evidence.series("critic/advantages/min"));
    max.iter().zip(min).map(|((step, max), (_, min))| (*step, f64::from(u8::from(*max == min)))).collect()
}
