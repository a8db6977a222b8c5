//! CISPO: the policy gradient weighted by a clipped ratio, which drops no token.

use super::{ANCHOR, CLIP_RANGE, LossInput, PolicyLoss, PolicyLossOutput};

pub(super) const LOSS: PolicyLoss = PolicyLoss {
    name: "cispo",
    aliases: &[],
    doc: "Policy gradient weighted by the clipped ratio: the clip bounds the weight of a token, and drops none.\n\
          Formula: Δ = clamp(log π − log π_old, ±20), ρ = e^Δ; L = −sg(clamp(ρ, 1−low, 1+high))·A·log π.\n\
          Paper: MiniMax 2025, MiniMax-M1, arXiv:2506.13585.\n\
          verl: compute_policy_loss_cispo.\n\
          TRL: GRPOTrainer with loss_type cispo, which clips above only, at epsilon_high itself: clip_ratio_low=1 and \
          clip_ratio_high = epsilon_high − 1 are the same, as ρ is never below 0.\n\
          SkyRL: cispo, whose cispo_anchor is policy_loss.anchor; its clip range is 1 and 4 by default.\n\
          When: rare tokens that turn an argument must keep their gradient; with clip_ratio_low of 1 or more, as in the paper.",
    aggregation: None,
    prepare: None,
    needs: &[],
    reads: &[CLIP_RANGE[0], CLIP_RANGE[1], CLIP_RANGE[2], ANCHOR],
    refuses: &[],
    chosen_by: None,
    run,
};

fn run(x: &LossInput) -> PolicyLossOutput {
    let log_ratio = x.log_ratio().detach();
    let ratio = log_ratio.clone().exp();
    let clipped = x.clip(ratio.clone());
    let is_clipped = ratio.not_equal(clipped.clone());
    let metrics = vec![
        x.mean("actor/pg_clipfrac", is_clipped.float()),
        x.mean("actor/ppo_kl", log_ratio.neg()),
        x.zero("actor/pg_clipfrac_lower"),
    ];
    PolicyLossOutput { per_token: x.weighted(clipped.neg() * x.advantages.clone() * x.log_prob.clone()), metrics }
}
