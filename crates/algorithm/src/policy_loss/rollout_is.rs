//! The policy gradient weighted by the ratio to the policy that generated, on the tokens within the clip range.

use super::{CLIP_RANGE, LossInput, NO_TOKEN_WEIGHTS, PolicyLoss, PolicyLossOutput};
use burnish_registry::Need;

pub(super) const LOSS: PolicyLoss = PolicyLoss {
    name: "rollout_is",
    aliases: &[],
    doc: "Policy gradient weighted by the ratio to the policy that generated; tokens outside the clip range are dropped.\n\
          Formula: Δ = clamp(log π − log π_rollout, ±20), ρ = e^Δ; L = −sg(ρ)·A·log π where 1−low < ρ < 1+high, else 0.\n\
          Source: Zhipu AI 2026, GLM-5: from vibe coding to agentic engineering, arXiv:2602.15763.\n\
          SkyRL: rollout_is.\n\
          When: asynchronous rollouts, where one ratio covers the difference of engines and the age of the weights, and a pass that \
          recomputes log-probabilities costs too much.",
    aggregation: None,
    prepare: None,
    needs: &[Need::Rollout],
    reads: &CLIP_RANGE,
    refuses: NO_TOKEN_WEIGHTS,
    chosen_by: None,
    run,
};

fn run(x: &LossInput) -> PolicyLossOutput {
    let log_ratio = x.log_ratio().detach();
    let ratio = log_ratio.clone().exp();
    let (low, high) = x.options.clip_range();
    let inside = ratio.clone().greater_scalar(1.0 - low).bool_and(ratio.clone().lower_scalar(1.0 + high));
    let metrics = vec![
        x.mean("actor/pg_clipfrac", inside.clone().bool_not().float()),
        x.mean("actor/ppo_kl", log_ratio.neg()),
        x.zero("actor/pg_clipfrac_lower"),
    ];
    let per_token = (ratio * inside.float()).neg() * x.advantages.clone() * x.log_prob.clone();
    PolicyLossOutput { per_token: x.weighted(per_token), metrics }
}
