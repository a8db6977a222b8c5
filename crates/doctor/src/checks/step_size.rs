//! Updates that move the policy too far within a step.

use burnish_util::number::short;

use super::nothing_moves::UPDATE_TO_WEIGHT;
use crate::check::Check;
use crate::evidence::{Evidence, largest, median};
use crate::finding::Finding;
use crate::phase::AFTER;

pub(super) const STEP_SIZE: Check = Check {
    name: "step size",
    phases: AFTER,
    reads: "`actor/ppo_kl`, `update_to_weight`",
    number: "largest KL of the policy from itself within a step, in nats per token",
    threshold: "KL above 0.5 in one step warns, in two steps fails; without a KL, updates above 0.05 of the weights warn",
    source: "sound runs have 0.001 to 0.1; at 10 to 250 times a recipe's rate, step 1 has 2 and the score falls one step later",
    meaning: "The updates of one step move the policy so far that the responses of that step say nothing about it.",
    remedy: "Divide {lr} by ten, and use fewer epochs per batch.",
    example,
    judge,
};

fn example() -> Evidence {
    Evidence::made_up(30, &[("actor/ppo_kl", |s| if s < 4.0 { 2.0 / s } else { 0.01 })])
}

fn judge(evidence: &Evidence) -> Finding {
    let moved: Vec<(u64, f64)> = evidence.series("actor/ppo_kl").iter().map(|(step, kl)| (*step, kl.abs())).collect();
    let Some((step, most)) = largest(&moved) else {
        return of_weights(evidence);
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

/// Judges a run without a policy by the size of its updates, as shares of the weights.
fn of_weights(evidence: &Evidence) -> Finding {
    let Some((_, changes)) = evidence.first_of(UPDATE_TO_WEIGHT) else {
        return Finding::not_applicable("the metrics have neither actor/ppo_kl nor update_to_weight");
    };
    // Updates of the first steps of Adam are large in sound runs: their moments are still small.
    let usual = median(&changes);
    match usual {
        _ if usual > 0.05 => {
            Finding::warn(usual, format!("the median update changes the weights by {} of their norm", short(usual)))
        }
        _ => Finding::pass(usual, format!("the median update changes the weights by {} of their norm", short(usual))),
    }
}
