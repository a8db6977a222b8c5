//! Distance from the reference.

use burnish_util::number::short;

use crate::alarms::Alarm;
use crate::check::Check;
use crate::evidence::{Evidence, ending, largest};
use crate::finding::{Finding, Verdict};
use crate::phase::AFTER;

pub(super) const KL: Check = Check {
    name: "KL",
    phases: AFTER,
    reads: "`actor/kl_loss` or `actor/reward_kl_penalty`",
    number: "largest KL to the reference, in nats per token",
    threshold: "above 1 and five times that of ten steps before warns; above 5 in three steps fails",
    source: "sound runs have 0.01 to 0.3; runs with a negative coefficient or a rate far too high have 3 to 9",
    meaning: "The policy is so far from where it began that its text is likely broken.",
    remedy: "Lower {lr}, raise the coefficient of the KL term ({kl_coef}) and keep it positive; go back to a checkpoint before.",
    example,
    judge,
};

pub(super) const ALARM: Alarm = Alarm {
    check: &KL,
    when: "warns or fails, and the KL of the last 2 steps is above 1",
    rings: |evidence, finding| {
        let last = series(evidence).map_or(vec![], |series| ending(&series, ALARM_STEPS).to_vec());
        finding.verdict >= Verdict::Warn && last.len() == ALARM_STEPS && last.iter().all(|(_, kl)| *kl > FAR)
    },
};

/// KL that is far, in nats per token: sound runs on the small tasks of `data/` have 0.01 to 0.3, blown-up ones 3 to 9.
const FAR: f64 = 1.0;
/// Steps in a row above it before the alarm. The first step after a long one may be far and come back.
const ALARM_STEPS: usize = 2;
/// Steps between two values that are compared.
const BEFORE: u64 = 10;

fn series(evidence: &Evidence) -> Option<Vec<(u64, f64)>> {
    evidence.first_of(&["actor/kl_loss", "actor/reward_kl_penalty"]).map(|(_, series)| series)
}

/// Returns the value ten steps before, or the first; `None` if the rows between are missing.
fn before(series: &[(u64, f64)], step: u64) -> Option<f64> {
    let found = series.iter().rev().find(|(at, _)| at + BEFORE <= step);
    // Other libraries may write a row every 25 steps.
    let interval = series.windows(2).map(|pair| pair[1].0 - pair[0].0).min().unwrap_or(1);
    match found {
        Some((at, kl)) => Some(*kl).filter(|_| at + 2 * BEFORE.max(interval) >= step),
        None => series.first().map(|(_, kl)| *kl),
    }
}

fn example() -> Evidence {
    Evidence::made_up(30, &[("actor/kl_loss", |s| s / 4.0)])
}

fn judge(evidence: &Evidence) -> Finding {
    let Some(series) = series(evidence) else {
        return Finding::not_applicable("the run measures no KL to a reference");
    };
    let Some((step, most)) = largest(&series) else { return Finding::not_applicable("the KL is never finite") };
    let far = series.iter().filter(|(_, kl)| *kl > 5.0).count();
    let sentence = format!("the policy is {} nats a token from where it began, at step {step}", short(most));
    if far >= 3 {
        return Finding::fail(most, format!("{sentence}, and above 5 in {far} steps"));
    }
    let grew = series.iter().any(|(step, kl)| *kl > FAR && before(&series, *step).is_some_and(|before| *kl > 5.0 * before.abs()));
    // The first row is the mean over the updates of a step; a KL above 1 there is a step that was too long.
    let begins_far = series[0].1 > FAR;
    if grew || begins_far { Finding::warn(most, sentence) } else { Finding::pass(most, sentence) }
}
