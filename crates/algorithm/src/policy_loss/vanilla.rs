//! PPO's clipped surrogate, with separate lower and upper clip, and with dual clip or TRL's two-sided clip.

use super::{CLIP_RANGE, LossInput, PolicyLoss, PolicyLossOutput};

/// The bound of the loss where the advantage is negative.
pub const DUAL_CLIP: &str = "actor_rollout_ref.actor.clip_ratio_c";

/// The bounds of the ratio.
pub const CLIPPING: &[&str] =
    &[CLIP_RANGE[0], CLIP_RANGE[1], CLIP_RANGE[2], DUAL_CLIP, "actor_rollout_ref.actor.policy_loss.delta"];

pub(super) const LOSS: PolicyLoss = PolicyLoss {
    name: "vanilla",
    aliases: &[],
    doc: "PPO's clipped surrogate with clip-higher and dual clip.\n\
          Formula: Δ = clamp(log π − log π_old, ±20), ρ = e^Δ; L = max(−Aρ, −A·clamp(ρ, 1−low, 1+high)); where A < 0: \
          L = min(L, −A·c). With policy_loss.delta: L = max(−A·min(ρ, δ), −A·clamp(ρ, 1−low, 1+high)).\n\
          Paper: Schulman et al. 2017, PPO, arXiv:1707.06347; clip-higher: Yu et al. 2025, DAPO, arXiv:2503.14476; dual clip: \
          Ye et al. 2019, arXiv:1912.09729; two-sided clip: Prime Intellect 2025, INTELLECT-2, arXiv:2505.07291.\n\
          verl: compute_policy_loss_vanilla.\n\
          TRL: GRPOTrainer with loss_type grpo (seq-mean-token-mean), bnpo or dapo (token-mean), dr_grpo \
          (seq-mean-token-sum-norm); it has no dual clip, so give delta, or a clip_ratio_c out of reach.\n\
          OpenRLHF: PolicyLoss of type ppo, whose dual_clip is clip_ratio_c and is off by default.\n\
          SkyRL: importance_sampling, which has no clip: give clip_ratio and clip_ratio_c out of reach, such as 1e9.\n\
          Deviation: TRL does not hold Δ within ±20; and delta replaces the dual clip, since where A < 0 it is a dual clip with \
          c = δ.\n\
          When: the default; every other loss is measured against it.",
    aggregation: None,
    prepare: None,
    needs: &[],
    reads: CLIPPING,
    refuses: &[],
    chosen_by: None,
    run,
};

fn run(x: &LossInput) -> PolicyLossOutput {
    let log_ratio = x.log_ratio();
    let ratio = log_ratio.clone().exp();
    let cost = x.advantages.clone().neg();
    let negative = x.advantages.clone().lower_scalar(0.0);

    let max = x.options.optional("delta").map_or_else(|| ratio.clone(), |delta| ratio.clone().clamp_max(delta));
    let free = cost.clone() * max;
    let clipped = cost.clone() * x.clip(ratio.clone());
    let is_clipped = clipped.clone().greater(free.clone());
    let surrogate = free.mask_where(is_clipped.clone(), clipped);

    let (per_token, is_capped) = match x.options.optional("delta") {
        Some(delta) => (surrogate, ratio.greater_scalar(delta).bool_and(negative)),
        None => {
            let ceiling = cost * x.options.number("clip_ratio_c");
            let is_capped = surrogate.clone().greater(ceiling.clone()).bool_and(negative);
            (surrogate.mask_where(is_capped.clone(), ceiling), is_capped)
        }
    };
    let metrics = vec![
        x.mean("actor/pg_clipfrac", is_clipped.float()),
        x.mean("actor/ppo_kl", log_ratio.detach().neg()),
        x.mean("actor/pg_clipfrac_lower", is_capped.float()),
    ];
    PolicyLossOutput { per_token: x.weighted(per_token), metrics }
}
