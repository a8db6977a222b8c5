//! KL-Cov: an unclipped surrogate that holds the tokens of highest covariance near the old policy.

use super::covariance::{how_many, shares};
use super::{LossInput, MAX_LOG_RATIO, MiniBatch, PolicyLoss, PolicyLossOutput, Prepared};
use crate::rounding::settled_tokens;

pub(super) const LOSS: PolicyLoss = PolicyLoss {
    name: "kl_cov",
    aliases: &["kl-cov"],
    doc: "Unclipped surrogate with a penalty on leaving the old policy for the tokens of highest covariance of advantage and \
          log π, which collapse the entropy.\n\
          Formula: Δ = clamp(log π − log π_old, ±20), ρ = e^Δ; cov = (A − mean A)·(log π − mean log π); L = −Aρ, and for the \
          max(1, ⌊kl_cov_ratio·N⌋) tokens of highest cov L = −Aρ + ppo_kl_coef·|Δ|.\n\
          Paper: Cui et al. 2025, The entropy mechanism of RL, arXiv:2505.22617.\n\
          verl: compute_policy_loss_kl_cov.\n\
          Deviation: means and choice are over the mini-batch, in verl over each micro-batch; Δ is held within ±20, and is 0 where it \
          is within the rounding of float32; tokens of equal covariance are taken by log π, then log π_old, not by their place.\n\
          When: the entropy falls early and the reward stops rising, and clip_cov is too rough.",
    aggregation: None,
    prepare: Some(prepare),
    needs: &[],
    reads: &["actor_rollout_ref.actor.policy_loss.kl_cov_ratio", "actor_rollout_ref.actor.policy_loss.ppo_kl_coef"],
    refuses: &[],
    chosen_by: None,
    run,
};

/// The factor is 1 for the penalised tokens, else 0.
fn prepare(x: &MiniBatch, _: &mut dyn FnMut() -> f64) -> Prepared {
    let mut shares = shares(x);
    let chosen = how_many(x.options.number("kl_cov_ratio"), shares.len());
    shares.sort_by(|a, b| {
        let by = |column: &[f32]| column[b.token].total_cmp(&column[a.token]);
        b.covariance.total_cmp(&a.covariance).then_with(|| by(x.log_prob)).then_with(|| by(x.old_log_prob))
    });
    let mut factor = vec![0.0; x.mask.len()];
    for share in shares.iter().take(chosen) {
        factor[share.token] = 1.0;
    }
    Prepared { factor, metrics: Vec::new() }
}

fn run(x: &LossInput) -> PolicyLossOutput {
    // |Δ| has a slope of ±1 next to 0: where two passes of one policy differ in their last bits, Δ is 0.
    let old_log_prob = settled_tokens(&x.log_prob, x.old_log_prob.clone());
    let log_ratio = (x.log_prob.clone() - old_log_prob).clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO);
    let distance = log_ratio.clone().abs();
    let penalised = x.factor.clone().unwrap_or_else(|| x.mask.zeros_like());
    let per_token = x.advantages.clone().neg() * log_ratio.exp() + distance.clone() * penalised * x.options.number("ppo_kl_coef");
    let metrics = vec![x.mean("actor/ppo_kl", distance.detach())];
    PolicyLossOutput { per_token: x.weighted(per_token), metrics }
}
