//! PPO's clipped surrogate, with separate lower and upper clip and with dual clip.

use super::{LossInput, Metric, PolicyLoss, PolicyLossOutput};
use crate::algorithm::column::masked_sum;

/// The log-ratio is held within ±this, so that e^Δ stays finite.
const MAX_LOG_RATIO: f64 = 20.0;

pub const LOSS: PolicyLoss = PolicyLoss {
    name: "vanilla",
    aliases: &[],
    doc: "PPO's clipped surrogate with clip-higher and dual clip.\n\
          Formula: Δ = clamp(log π − log π_old, ±20), ρ = e^Δ; L = max(−Aρ, −A·clamp(ρ, 1−low, 1+high)); where A < 0: \
          L = min(L, −A·c).\n\
          Paper: Schulman et al. 2017, PPO, arXiv:1707.06347; clip-higher: Yu et al. 2025, DAPO, arXiv:2503.14476; dual clip: \
          Ye et al. 2019, arXiv:1912.09729.\n\
          verl: compute_policy_loss_vanilla.",
    aggregation: None,
    prepare: None,
    run,
};

fn run(x: &LossInput) -> PolicyLossOutput {
    let log_ratio = (x.log_prob.clone() - x.old_log_prob.clone()).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO);
    let ratio = log_ratio.clone().exp();
    let cost = x.advantages.clone().neg();
    let negative = x.advantages.clone().lower_scalar(0.0);

    let free = cost.clone() * ratio.clone();
    let clipped = cost.clone() * ratio.clamp(1.0 - x.options.clip.low, 1.0 + x.options.clip.high);
    let is_clipped = clipped.clone().greater(free.clone());
    let surrogate = free.mask_where(is_clipped.clone(), clipped);

    let ceiling = cost * x.options.clip.c;
    let is_capped = surrogate.clone().greater(ceiling.clone()).bool_and(negative);
    let mut per_token = surrogate.mask_where(is_capped.clone(), ceiling);
    if let Some(weights) = &x.rollout_is_weights {
        per_token = per_token * weights.clone();
    }

    let count = masked_sum(x.mask.clone(), &x.mask);
    let mean = |name, values| Metric { name, sum: masked_sum(values, &x.mask), count };
    let metrics = vec![
        mean("actor/pg_clipfrac", is_clipped.float()),
        mean("actor/ppo_kl", log_ratio.detach().neg()),
        mean("actor/pg_clipfrac_lower", is_capped.float()),
    ];
    PolicyLossOutput { per_token, metrics }
}
