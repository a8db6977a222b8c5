//! VESPO: the policy gradient weighted by a smooth function of the response's ratio.

use super::{LossInput, MAX_LOG_RATIO, PolicyLoss, PolicyLossOutput};
use crate::column::Segments;
use burnish_registry::{Refusal, When};

/// The lower bound of w (TRL).
const MIN_RATIO: f64 = 1e-8;

pub(super) const LOSS: PolicyLoss = PolicyLoss {
    name: "vespo",
    aliases: &[],
    doc: "Policy gradient weighted by a gamma-shaped function of the response's ratio, which is 1 on-policy and falls on both sides.\n\
          Formula: log w = clamp(Σ_t clamp(log π − log π_old, ±20) + Σ_t clamp(log w_rollout, log 1e-8, 20), log 1e-8, 20); \
          (k, λ) = (vespo_k_pos, vespo_lambda_pos) where A ≥ 0, else (vespo_k_neg, vespo_lambda_neg); \
          L = −sg(exp(λ + k·log w − λ·w))·A·log π.\n\
          Paper: VESPO 2026, arXiv:2602.10693.\n\
          TRL: GRPOTrainer with loss_type vespo and get_gamma_weights, with token-mean over the mini-batch.\n\
          Deviation: none in the numbers; importance weights of the rollout must be per token, as TRL demands, since they \
          are multiplied over the response.\n\
          When: very stale data, asynchronous rollouts; with token-mean.",
    aggregation: None,
    prepare: None,
    needs: &[],
    reads: &[
        "actor_rollout_ref.actor.policy_loss.vespo_k_pos",
        "actor_rollout_ref.actor.policy_loss.vespo_lambda_pos",
        "actor_rollout_ref.actor.policy_loss.vespo_k_neg",
        "actor_rollout_ref.actor.policy_loss.vespo_lambda_neg",
    ],
    refuses: &[
        Refusal {
            key: "algorithm.rollout_correction.rollout_is",
            when: When::Is("sequence"),
            why: "`NAME` multiplies the weights of a response's tokens, so they must be per token",
            instead: "write KEY=token",
        },
        Refusal {
            key: "algorithm.rollout_correction.count_rejected",
            when: When::On,
            why: "`NAME` takes the logarithm of weights, which must not be 0",
            instead: "write KEY=false",
        },
    ],
    chosen_by: None,
    run,
};

fn run(x: &LossInput) -> PolicyLossOutput {
    let o = x.options;
    let min = MIN_RATIO.ln();
    let segments = Segments::new(x.offsets, &x.mask.device());
    let log_ratio = x.log_ratio().detach();
    let log_weights = x.rollout_is_weights.clone().map(|weights| weights.log().clamp(min, MAX_LOG_RATIO));
    let logs = log_weights.map_or_else(|| log_ratio.clone(), |log_weights| log_ratio.clone() + log_weights);
    let log_w = segments.spread(segments.sum(logs * x.mask.clone()).clamp(min, MAX_LOG_RATIO));

    let negative = x.advantages.clone().lower_scalar(0.0);
    let by_sign = |pos: f64, neg: f64| x.mask.full_like(pos).mask_fill(negative.clone(), neg);
    let (k, lambda) = (
        by_sign(o.number("vespo_k_pos"), o.number("vespo_k_neg")),
        by_sign(o.number("vespo_lambda_pos"), o.number("vespo_lambda_neg")).clamp_min(1e-4),
    );
    let phi = (lambda.clone() + k * log_w.clone() - lambda * log_w.exp()).exp();
    let metrics = vec![x.mean("actor/vespo_phi", phi.clone()), x.mean("actor/ppo_kl", log_ratio.neg())];
    PolicyLossOutput { per_token: phi.neg() * x.advantages.clone() * x.log_prob.clone(), metrics }
}
