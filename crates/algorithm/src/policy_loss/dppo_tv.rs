//! DPPO with the binary total variation: a token counts while its probability has not moved too far.

use burn::tensor::{Bool, Tensor};

use super::{ANCHOR, CLIP_RANGE, LossInput, PolicyLoss, PolicyLossOutput};

/// The clip range, the bound of the ratio, and the policy that the ratio compares with.
pub(crate) const TRUNCATED: &[&str] =
    &[CLIP_RANGE[0], CLIP_RANGE[1], CLIP_RANGE[2], "actor_rollout_ref.actor.clip_ratio_c", ANCHOR];

pub(super) const LOSS: PolicyLoss = PolicyLoss {
    name: "dppo_tv",
    aliases: &[],
    doc: "Policy gradient with a truncated ratio, on the tokens whose probability itself has moved little.\n\
          Formula: Δ = clamp(log π − log π_old, ±20), ρ = e^Δ; a token counts while π − π_old ≤ high where A > 0, \
          ≥ −low elsewhere; L = −A·sg(min(ρ, clip_ratio_c))·log π on those, else 0.\n\
          Paper: DPPO 2026, arXiv:2602.04879.\n\
          verl: compute_policy_loss_dppo_tv.\n\
          SkyRL: dppo of type binary_tv, which compares with the policy that generated (policy_loss.anchor=rollout) and does not \
          bound the ratio (clip_ratio_c out of reach); its gradient is the same, its value has ρ in place of sg(ρ)·log π.\n\
          When: ratios of rare tokens are large though their probability hardly moves; the clip range is one of \
          probabilities, and clip_ratio_c is better near 20 than at 3.",
    aggregation: None,
    prepare: None,
    needs: &[],
    reads: TRUNCATED,
    refuses: &[],
    chosen_by: None,
    run,
};

fn run(x: &LossInput) -> PolicyLossOutput {
    let (low, high) = x.options.clip_range();
    let moved = x.log_prob.clone().detach().exp() - x.old_log_prob.clone().exp();
    let up = moved.clone().lower_equal_scalar(high);
    let down = moved.greater_equal_scalar(-low);
    within(x, up, down)
}

/// Returns the truncated policy gradient on the tokens inside their trust region: the tokens in `up` if the advantage is
/// positive, otherwise the tokens in `down`.
pub(super) fn within(x: &LossInput, up: Tensor<1, Bool>, down: Tensor<1, Bool>) -> PolicyLossOutput {
    let positive = x.advantages.clone().greater_scalar(0.0);
    let inside = positive.clone().bool_and(up).bool_or(positive.bool_not().bool_and(down));
    let log_ratio = x.log_ratio().detach();
    let ratio = log_ratio.clone().exp();
    let truncated = ratio.clone().greater_scalar(x.options.number("clip_ratio_c")).bool_and(inside.clone());

    let scale = ratio.clamp_max(x.options.number("clip_ratio_c")) * inside.clone().float();
    let metrics = vec![
        x.mean("actor/pg_clipfrac", inside.bool_not().float()),
        x.mean("actor/ppo_kl", log_ratio.neg()),
        x.mean("actor/pg_clipfrac_lower", truncated.float()),
    ];
    PolicyLossOutput { per_token: x.weighted(scale.neg() * x.advantages.clone() * x.log_prob.clone()), metrics }
}
