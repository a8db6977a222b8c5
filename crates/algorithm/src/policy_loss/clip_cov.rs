//! Clip-Cov: PPO's surrogate that leaves out some of the tokens whose covariance drives the entropy down.

use super::covariance::{how_many, shares};
use super::{CLIP_RANGE, LossInput, MiniBatch, PolicyLoss, PolicyLossOutput, Prepared};

pub(super) const LOSS: PolicyLoss = PolicyLoss {
    name: "clip_cov",
    aliases: &["clip-cov"],
    doc: "Clipped surrogate without a few random tokens of high covariance of advantage and log π, which collapse the entropy.\n\
          Formula: cov = (A − mean A)·(log π − mean log π); of the tokens with clip_cov_lb < cov < clip_cov_ub that the clip \
          leaves alone, max(1, ⌊clip_cov_ratio·N⌋) at random have L = 0; else L = max(−Aρ, −A·clamp(ρ, 1−low, 1+high)).\n\
          Paper: Cui et al. 2025, The entropy mechanism of RL, arXiv:2505.22617.\n\
          verl: compute_policy_loss_clip_cov.\n\
          Deviation: means and choice are over the mini-batch, in verl over each micro-batch; and log π − log π_old is held \
          within ±20.\n\
          When: the entropy falls early and the reward stops rising.",
    aggregation: None,
    prepare: Some(prepare),
    needs: &[],
    reads: &[
        CLIP_RANGE[0],
        CLIP_RANGE[1],
        CLIP_RANGE[2],
        "actor_rollout_ref.actor.policy_loss.clip_cov_ratio",
        "actor_rollout_ref.actor.policy_loss.clip_cov_lb",
        "actor_rollout_ref.actor.policy_loss.clip_cov_ub",
    ],
    refuses: &[],
    chosen_by: None,
    run,
};

/// The factor is 0 for the tokens left out, else 1.
fn prepare(x: &MiniBatch, uniform: &mut dyn FnMut() -> f64) -> Prepared {
    let shares = shares(x);
    let chosen = how_many(x.options.number("clip_cov_ratio"), shares.len());
    let mut candidates: Vec<usize> = shares
        .iter()
        .filter(|s| {
            s.covariance > x.options.number("clip_cov_lb")
                && s.covariance < x.options.number("clip_cov_ub")
                && !is_clipped(x, s.token)
        })
        .map(|s| s.token)
        .collect();
    let mut factor = vec![1.0; x.mask.len()];
    for _ in 0..chosen.min(candidates.len()) {
        let drawn = (uniform() * candidates.len() as f64) as usize;
        factor[candidates.swap_remove(drawn.min(candidates.len() - 1))] = 0.0;
    }
    Prepared { factor, metrics: Vec::new() }
}

/// True if clipping the ratio raises the loss of this token.
fn is_clipped(x: &MiniBatch, token: usize) -> bool {
    let ratio = (f64::from(x.log_prob[token]) - f64::from(x.old_log_prob[token])).exp();
    let (low, high) = x.options.clip_range();
    match x.advantages[token] {
        a if a > 0.0 => ratio > 1.0 + high,
        a if a < 0.0 => ratio < 1.0 - low,
        _ => false,
    }
}

fn run(x: &LossInput) -> PolicyLossOutput {
    let log_ratio = x.log_ratio();
    let ratio = log_ratio.clone().exp();
    let cost = x.advantages.clone().neg();
    let free = cost.clone() * ratio.clone();
    let clipped = cost * x.clip(ratio);
    let is_clipped = clipped.clone().greater(free.clone());
    let surrogate = free.mask_where(is_clipped, clipped);

    let mask = x.factor.clone().unwrap_or_else(|| x.mask.clone());
    let metrics =
        vec![x.mean("actor/pg_clipfrac", mask.clone().equal_elem(0.0).float()), x.mean("actor/ppo_kl", log_ratio.detach().neg())];
    PolicyLossOutput { per_token: x.weighted(surrogate * mask), metrics }
}
