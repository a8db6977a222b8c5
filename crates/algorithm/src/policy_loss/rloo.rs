//! TRL's RLOO loss: a clipped surrogate with one ratio per response, the product of its tokens' ratios.

use super::{CLIP_RANGE, LossInput, MAX_LOG_RATIO, Metric, PolicyLoss, PolicyLossOutput};
use crate::column::{Segments, masked_sum};

pub(super) const LOSS: PolicyLoss = PolicyLoss {
    name: "rloo",
    aliases: &[],
    doc: "Clipped surrogate with one ratio per response, the product of its tokens' ratios: the response is one action.\n\
          Formula: log ρ = Σ_t (log π − log π_old), held below 20; A = mean_t(A_t); every token of a response has \
          L = max(−Aρ, −A·clamp(ρ, 1−low, 1+high)).\n\
          Paper: Ahmadian et al. 2024, Back to basics, arXiv:2402.14740; the clip: Schulman et al. 2017, PPO, arXiv:1707.06347.\n\
          TRL: RLOOTrainer._compute_loss.\n\
          Deviation: TRL does not hold log ρ, whose exponential then overflows, and has no importance weights: here they weight \
          each token's part of its response. \
          actor/pg_clipfrac is of responses, as TRL's clip_ratio/region_mean.\n\
          When: with the estimator of the same name and an outcome reward. The gradient is the gradient of the sum over tokens, so \
          long responses weigh more, and off-policy ratios leave the clip range soon.",
    aggregation: Some("seq-mean-token-mean"),
    prepare: None,
    needs: &[],
    reads: &CLIP_RANGE,
    refuses: &[],
    chosen_by: None,
    run,
};

fn run(x: &LossInput) -> PolicyLossOutput {
    let segments = Segments::new(x.offsets, &x.mask.device());
    let difference = x.difference();
    let ratio = segments.sum(difference.clone() * x.mask.clone()).clamp_max(MAX_LOG_RATIO).exp();
    let lengths = segments.sum(x.mask.clone());
    let cost = segments.sum(x.advantages.clone() * x.mask.clone()).neg() / lengths.clone().clamp_min(1.0);

    let free = cost.clone() * ratio.clone();
    let clipped = cost * x.clip(ratio);
    let is_clipped = clipped.clone().greater(free.clone());
    let per_token = segments.spread(free.mask_where(is_clipped.clone(), clipped));

    let trained = lengths.greater_scalar(0.0).float();
    let (sum, count) = (masked_sum(is_clipped.float(), &trained), masked_sum(trained.clone(), &trained));
    let metrics =
        vec![Metric { name: "actor/pg_clipfrac".into(), sum, count }, x.mean("actor/ppo_kl", difference.detach().neg())];
    PolicyLossOutput { per_token: x.weighted(per_token), metrics }
}
