//! DPPO with the binary KL divergence.

use burn::tensor::Tensor;

use super::{LossInput, PolicyLoss, PolicyLossOutput, dppo_tv};

/// Keeps the logarithm finite at a probability of 1 (verl).
const EPSILON: f64 = 1e-8;

pub(super) const LOSS: PolicyLoss = PolicyLoss {
    name: "dppo_kl",
    aliases: &[],
    doc: "Policy gradient with a truncated ratio, on the tokens whose probability against all others has moved little.\n\
          Formula: p = π, q = π_old; K = q·log(q/p) + (1 − q)·log((1 − q + 1e-8)/(1 − p + 1e-8)); a token counts while \
          K ≤ high or p ≤ q where A > 0, K ≤ low or p ≥ q elsewhere; L = −A·sg(min(ρ, clip_ratio_c))·log π on those, else 0.\n\
          Paper: DPPO 2026, arXiv:2602.04879.\n\
          verl: compute_policy_loss_dppo_kl.\n\
          SkyRL: dppo of type binary_kl, with the settings that dppo_tv names.\n\
          When: as dppo_tv, with a divergence that is strict near probabilities of 0 and 1; the clip range is one of \
          divergences.",
    aggregation: None,
    prepare: None,
    needs: &[],
    reads: dppo_tv::TRUNCATED,
    refuses: &[],
    chosen_by: None,
    run,
};

fn run(x: &LossInput) -> PolicyLossOutput {
    let (log_p, log_q) = (x.log_prob.clone().detach(), x.old_log_prob.clone());
    let (low, high) = x.options.clip_range();
    let (p, q) = (log_p.clone().exp(), log_q.clone().exp());
    // NaN if rounding put a probability above 1; it compares as too far.
    let others = |p: Tensor<1>| p.neg() + 1.0 + EPSILON;
    let divergence = q.clone() * (log_q - log_p) + (q.clone().neg() + 1.0) * (others(q.clone()) / others(p.clone())).log();
    let up = divergence.clone().lower_equal_scalar(high).bool_or(p.clone().lower_equal(q.clone()));
    let down = divergence.lower_equal_scalar(low).bool_or(p.greater_equal(q));
    dppo_tv::within(x, up, down)
}
