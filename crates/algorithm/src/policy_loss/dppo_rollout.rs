//! DPPO's trust region around the policy that generated, with a quadratic pull towards that policy.

use burn::tensor::{Bool, Tensor};

use super::{CLIP_RANGE, LossInput, NO_TOKEN_WEIGHTS, PolicyLoss, PolicyLossOutput};
use burnish_registry::Need;

/// The weights of the advantage and of the pull.
pub(super) const TAUS: [&str; 2] = ["actor_rollout_ref.actor.policy_loss.adv_tau", "actor_rollout_ref.actor.policy_loss.kl_tau"];

pub(super) const LOSS: PolicyLoss = PolicyLoss {
    name: "dppo_rollout",
    aliases: &[],
    doc: "Policy gradient on the tokens whose probability has moved little since generation, and a pull of every token towards the \
          policy that generated.\n\
          Formula: Δ = log π − log π_rollout, ρ = e^clamp(Δ, ±20); a token counts while π − π_rollout ≤ high where A > 0, ≥ −low \
          elsewhere; L = −adv_tau·A·ρ on those, + kl_tau·Δ² on all.\n\
          Paper: DPPO 2026, arXiv:2602.04879.\n\
          prime-rl: default, whose dppo_mask_low and dppo_mask_high are clip_ratio_low and clip_ratio_high.\n\
          Deviation: prime-rl does not hold Δ within ±20 in ρ. Its documentation has a bound of ρ which its code lacks.\n\
          When: asynchronous rollouts whose weights are a few updates old; the clip range is one of probabilities.",
    aggregation: None,
    prepare: None,
    needs: &[Need::Rollout],
    reads: &[CLIP_RANGE[0], CLIP_RANGE[1], CLIP_RANGE[2], TAUS[0], TAUS[1]],
    refuses: NO_TOKEN_WEIGHTS,
    chosen_by: None,
    run,
};

fn run(x: &LossInput) -> PolicyLossOutput {
    let (low, high) = x.options.clip_range();
    let moved = moved(x);
    let positive = x.advantages.clone().greater_scalar(0.0);
    let up = positive.clone().bool_and(moved.clone().lower_equal_scalar(high));
    let down = positive.bool_not().bool_and(moved.greater_equal_scalar(-low));
    with_pull(x, up.bool_or(down))
}

/// Returns π − π_rollout, without gradient.
pub(super) fn moved(x: &LossInput) -> Tensor<1> {
    x.log_prob.clone().detach().exp() - x.old_log_prob.clone().exp()
}

/// Returns the surrogate on the tokens in `inside`, and the quadratic pull on all.
pub(super) fn with_pull(x: &LossInput, inside: Tensor<1, Bool>) -> PolicyLossOutput {
    let [adv_tau, kl_tau] = ["adv_tau", "kl_tau"].map(|name| x.options.number(name));
    let (difference, log_ratio) = (x.difference(), x.log_ratio());
    let metrics = vec![
        x.mean("actor/pg_clipfrac", inside.clone().bool_not().float()),
        x.mean("actor/ppo_kl", log_ratio.clone().detach().neg()),
        x.zero("actor/pg_clipfrac_lower"),
    ];
    let surrogate = log_ratio.exp() * x.advantages.clone() * inside.float() * -adv_tau;
    let pull = difference.clone() * difference * kl_tau;
    PolicyLossOutput { per_token: x.weighted(surrogate + pull), metrics }
}
