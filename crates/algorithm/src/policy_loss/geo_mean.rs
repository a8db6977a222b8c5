//! GMPO: the geometric mean of clipped ratios, one term per response.

use super::{CLIP_RANGE, LossInput, MAX_LOG_RATIO, PolicyLoss, PolicyLossOutput};

/// Keeps the logarithm of an importance weight of 0 finite (verl).
const WEIGHT_EPSILON: f64 = 1e-10;

pub(super) const LOSS: PolicyLoss = PolicyLoss {
    name: "geo_mean",
    aliases: &[],
    doc: "One term per response: the geometric mean of its tokens' ratios, each clipped first, times its mean advantage.\n\
          Formula: δ = log π − log π_old; δ' = min(δ, high) where A > 0, max(δ, −low) where A < 0, 0 where A = 0; \
          every token of a response has L = −mean_t(A)·exp(mean_t(δ')); importance weights by their geometric mean.\n\
          Paper: Zhao et al. 2025, GMPO, arXiv:2507.20673.\n\
          verl: compute_policy_loss_geo_mean.\n\
          Deviation: the mean is over the responses of the mini-batch, in verl over those of a micro-batch; mean_t(δ') is held \
          below 20.\n\
          When: token ratios with heavy tails; with a wide clip range, such as 0.4. The clip range is one of log-ratios.",
    aggregation: Some("seq-mean-token-mean"),
    prepare: None,
    needs: &[],
    reads: &CLIP_RANGE,
    refuses: &[],
    chosen_by: None,
    run,
};

fn run(x: &LossInput) -> PolicyLossOutput {
    let (low, high) = x.options.clip_range();
    let difference = x.difference();
    let positive = x.advantages.clone().greater_scalar(0.0);
    let negative = x.advantages.clone().lower_scalar(0.0);

    let bounded = difference.zeros_like();
    let bounded = bounded.mask_where(positive.clone(), difference.clone().clamp_max(high));
    let bounded = bounded.mask_where(negative.clone(), difference.clone().clamp_min(-low));
    let ratio = x.sequence_mean(bounded).clamp_max(MAX_LOG_RATIO).exp();
    let per_token = x.sequence_mean(x.advantages.clone()).neg() * ratio;
    let per_token = match &x.rollout_is_weights {
        Some(weights) => per_token * x.sequence_mean((weights.clone() + WEIGHT_EPSILON).log()).exp(),
        None => per_token,
    };

    let difference = difference.detach();
    let outside = difference.clone().not_equal(difference.clone().clamp(-low, high));
    let metrics = vec![
        x.mean("actor/pg_clipfrac", outside.clone().bool_and(positive).float()),
        x.mean("actor/ppo_kl", difference.neg()),
        x.mean("actor/pg_clipfrac_lower", outside.bool_and(negative).float()),
    ];
    PolicyLossOutput { per_token, metrics }
}
