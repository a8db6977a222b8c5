//! Runs whose weights do not change.

use burnish_util::number::short;

use crate::check::Check;
use crate::evidence::{Evidence, largest};
use crate::finding::Finding;
use crate::phase::AFTER;

pub(super) const NOTHING_MOVES: Check = Check {
    name: "nothing moves",
    phases: AFTER,
    reads: "`grad_norm`, `lr`, `update_to_weight`, `actor/kl_loss`, and the rank of an adapter",
    number: "largest gradient norm, learning rate or KL of the run",
    threshold: "gradient 0 in all steps, rate or updates below 1e-9, or KL 0 after step 2 fails; an adapter's rate below 1e-6 warns",
    source: "runs of TRL: with `lora_alpha=0` the gradient is 0; at a rate of 1e-11 the gradient is usual and the KL 0",
    meaning: "The weights, or those of the adapter, are the same as before the run.",
    remedy: "Set {lr} above 0 (adapters: 1e-4 to 1e-3), lora_alpha above 0, and modules that the model has.",
    example,
    judge,
};

/// Size of an update as a share of the weights.
pub(super) const UPDATE_TO_WEIGHT: &[&str] = &["actor/update_to_weight", "train/update_to_weight"];

fn example() -> Evidence {
    Evidence::made_up(30, &[("actor/grad_norm", |_| 0.0), ("actor/lr", |_| 1e-6)])
}

const GRADIENTS: &[&str] = &["actor/grad_norm", "train/grad_norm"];
const RATES: &[&str] = &["actor/lr", "train/lr"];

fn judge(evidence: &Evidence) -> Finding {
    let (gradients, rates) = (evidence.first_of(GRADIENTS), evidence.first_of(RATES));
    let kl: Vec<(u64, f64)> = evidence.series("actor/kl_loss").into_iter().filter(|(step, _)| *step > 2).collect();
    let most =
        |series: &Option<(&str, Vec<(u64, f64)>)>| series.as_ref().and_then(|(_, series)| largest(series)).map(|one| one.1);
    let (gradient, rate) = (most(&gradients), most(&rates));
    let steps = gradients.as_ref().map_or(0, |(_, series)| series.len());
    if gradient == Some(0.0) && steps >= 3 {
        return Finding::fail(0.0, format!("the gradient is exactly 0 in all of {steps} steps: no weight changes"));
    }
    if let Some(rate) = rate.filter(|rate| *rate < 1e-9) {
        return Finding::fail(rate, format!("the learning rate is never above {}: no weight changes", short(rate)))
            .advise("Set {lr} above 0, and a warm-up that is shorter than the run.");
    }
    let changes = evidence.first_of(UPDATE_TO_WEIGHT).map(|(_, series)| series).unwrap_or_default();
    if let Some((_, change)) = largest(&changes).filter(|(_, change)| changes.len() >= 5 && *change < 1e-9) {
        return Finding::fail(
            change,
            format!("the largest of {} updates changes the weights by {} of their norm", changes.len(), short(change)),
        );
    }
    if kl.len() >= 5 && kl.iter().all(|(_, kl)| *kl == 0.0) {
        return Finding::fail(
            0.0,
            format!("the KL to the reference is exactly 0 to step {}: no update arrives", kl[kl.len() - 1].0),
        );
    }
    let has_adapter = evidence.setting_number("lora_rank").is_some_and(|rank| rank > 0.0);
    match rate {
        Some(rate) if has_adapter && rate < 1e-6 => {
            Finding::warn(rate, format!("the adapter learns at {}; its matrix B starts at 0 and stays near 0", short(rate)))
        }
        _ if gradient.is_none() && rate.is_none() => Finding::not_applicable("the metrics have neither gradient norms nor rates"),
        _ => Finding::pass(gradient.or(rate), "gradients and learning rate are above 0"),
    }
}
