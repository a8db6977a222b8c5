//! Updates that move the policy too far within a step.

use burnish_util::number::short;

use crate::check::Check;
use crate::evidence::{Evidence, largest, median};
use crate::finding::Finding;
use crate::phase::AFTER;

pub(super) const STEP_SIZE: Check = Check {
    name: "step size",
    phases: AFTER,
    reads: "`actor/ppo_kl`",
    number: "largest KL of the policy from itself within a step, in nats per token",
    threshold: "above 0.5 in one step warns, in two steps fails",
    meaning: "The updates of one step move the policy so far that the responses of that step say nothing about it.",
    remedy: "Divide {lr} by ten, and use fewer epochs per batch.",
    judge,
};

fn judge(evidence: &Evidence) -> Finding {
    let moved: Vec<(u64, f64)> = evidence.series("actor/ppo_kl").iter().map(|(step, kl)| (*step, kl.abs())).collect();
    let Some((step, most)) = largest(&moved) else {
        return Finding::not_applicable("the metrics have no actor/ppo_kl");
    };
    let far = moved.iter().filter(|(_, kl)| *kl > 0.5).count();
    let sentence = format!(
        "step {step} moved the policy by {} nats a token, {far} {} by more than 0.5; the median step moved it by {}",
        short(most),
        if far == 1 { "step" } else { "steps" },
        short(median(&moved))
    );
    match far {
        0 => Finding::pass(most, format!("no step moved the policy by more than {} nats a token", short(most))),
        1 => Finding::warn(most, sentence),
        _ => Finding::fail(most, sentence),
    }
}
