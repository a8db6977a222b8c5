//! Values that are not numbers, and gradients that jump.

use burnish_util::number::short;

use crate::alarms::Alarm;
use crate::check::Check;
use crate::evidence::{Evidence, median};
use crate::finding::{Finding, Verdict};
use crate::phase::AFTER;

pub(super) const NOT_FINITE: Check = Check {
    name: "NaN",
    phases: AFTER,
    reads: "loss, gradient norm, KL, entropy and score of every step, and `skipped_updates`",
    number: "number of steps with a value that is not finite; without one, the largest jump of the gradient norm",
    threshold: "one step warns; three steps, the last step, or a score fails; a gradient of ten times its median of 20 steps warns",
    source: "a rule of thumb: sound runs stay within five times the median of their last 20 steps",
    meaning: "A value that is not a number spoils the weights, or is about to.",
    remedy: "Lower {lr}; return None where a score is missing; use bfloat16 or float32. A gradient clip bounds jumps.",
    example,
    judge,
};

pub(super) const ALARM: Alarm = Alarm {
    check: &NOT_FINITE,
    when: "fails, or an update was left out, or a gradient is 30 times its usual norm",
    rings: |evidence, finding| {
        let jumped = || largest_jump(evidence).is_some_and(|(_, times)| times > ALARM_JUMP);
        finding.verdict == Verdict::Fail || finding.verdict == Verdict::Warn && (skipped(evidence) > 0.0 || jumped())
    },
};

/// Jump of the gradient norm that is an alarm. Gradients of a nearly solved task are often near 0, and one hard prompt is then
/// ten times the usual. A score that is a thousand times too large jumps by 90 (docs/benchmarks/alarms.md).
const ALARM_JUMP: f64 = 30.0;

fn example() -> Evidence {
    Evidence::made_up(30, &[("actor/grad_norm", |s| if s < 20.0 { 1.0 } else { f64::NAN })])
}

/// Metrics that a sound step has as numbers.
const CORE: &[&str] = &[
    "critic/score/mean",
    "critic/rewards/mean",
    "train/loss",
    "actor/pg_loss",
    "actor/kl_loss",
    "actor/entropy",
    "actor/grad_norm",
    "train/grad_norm",
    "critic/grad_norm",
    "critic/vf_loss",
];
const GRADIENTS: &[&str] = &["actor/grad_norm", "train/grad_norm"];
/// Steps whose median a gradient is compared with.
const WINDOW: usize = 20;

fn judge(evidence: &Evidence) -> Finding {
    let is_bad = |value: Option<&f64>| value.is_some_and(|value| !value.is_finite());
    let bad: Vec<(u64, Vec<&str>)> = evidence
        .rows
        .iter()
        .filter_map(|row| {
            let names: Vec<&str> = CORE.iter().copied().filter(|name| is_bad(row.values.get(*name))).collect();
            (!names.is_empty()).then_some((row.step, names))
        })
        .collect();
    if let Some((step, names)) = bad.first() {
        let ends = evidence.rows.last().is_some_and(|row| bad.iter().any(|(step, _)| *step == row.step));
        let has_score = bad.iter().any(|(_, names)| names.contains(&CORE[0]));
        let sentence = format!("{} not a number at step {step}, and in {} steps in all", is_or_are(names), bad.len());
        let count = bad.len() as f64;
        return if bad.len() >= 3 || ends || has_score { Finding::fail(count, sentence) } else { Finding::warn(count, sentence) };
    }
    let skipped = skipped(evidence);
    if skipped > 0.0 {
        return Finding::warn(
            skipped,
            format!("{} updates were left out, because their gradient was not finite", short(skipped)),
        );
    }
    match largest_jump(evidence) {
        Some((step, times)) if times > 10.0 => {
            Finding::warn(times, format!("the gradient norm of step {step} is {} times the usual", short(times)))
        }
        jump => Finding::pass(jump.map_or(0.0, |jump| jump.1), "all values are finite"),
    }
}

/// Returns the number of updates that were left out.
fn skipped(evidence: &Evidence) -> f64 {
    evidence.series("actor/skipped_updates").iter().map(|(_, count)| count).sum()
}

/// Returns the step whose gradient norm is the largest multiple of the median before it, and that multiple.
fn largest_jump(evidence: &Evidence) -> Option<(u64, f64)> {
    let (_, gradients) = evidence.first_of(GRADIENTS)?;
    let jumps = (WINDOW..gradients.len()).map(|at| {
        let usual = median(&gradients[at - WINDOW..at]);
        (gradients[at].0, if usual > 0.0 { gradients[at].1 / usual } else { 0.0 })
    });
    jumps.max_by(|a, b| a.1.total_cmp(&b.1))
}

fn is_or_are(names: &[&str]) -> String {
    match names {
        [name] => format!("{name} is"),
        [first, .., last] => format!("{first} … {last} are"),
        [] => String::new(),
    }
}
