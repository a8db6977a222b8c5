//! Distance from the reference.

use burnish_util::number::short;

use crate::check::Check;
use crate::evidence::{Evidence, largest};
use crate::finding::Finding;
use crate::phase::AFTER;

pub(super) const KL: Check = Check {
    name: "KL",
    phases: AFTER,
    reads: "`actor/kl_loss` or `actor/reward_kl_penalty`",
    number: "largest KL to the reference, in nats per token",
    threshold: "above 1 and five times that of ten steps before warns; above 5 in three steps fails",
    meaning: "The policy is so far from where it began that its text is likely broken.",
    remedy: "Lower {lr}, raise the coefficient of the KL term ({kl_coef}) and keep it positive; go back to a checkpoint before.",
    judge,
};

fn judge(evidence: &Evidence) -> Finding {
    let Some((_, series)) = evidence.first_of(&["actor/kl_loss", "actor/reward_kl_penalty"]) else {
        return Finding::not_applicable("the run measures no KL to a reference");
    };
    let Some((step, most)) = largest(&series) else { return Finding::not_applicable("the KL is never finite") };
    let far = series.iter().filter(|(_, kl)| *kl > 5.0).count();
    let sentence = format!("the policy is {} nats a token from where it began, at step {step}", short(most));
    if far >= 3 {
        return Finding::fail(most, format!("{sentence}, and above 5 in {far} steps"));
    }
    let grew = series.iter().enumerate().any(|(at, (_, kl))| *kl > 1.0 && *kl > 5.0 * series[at.saturating_sub(10)].1.abs());
    // The first row is the mean over the updates of a step; a KL above 1 there is a step that was too long.
    let begins_far = series[0].1 > 1.0;
    if grew || begins_far { Finding::warn(most, sentence) } else { Finding::pass(most, sentence) }
}
