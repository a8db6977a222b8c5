//! Divergences between two distributions over the vocabulary, and their derivatives by the logits of the first.

use burn::tensor::{Tensor, activation};

use super::super::simd::LogSum;
use super::super::simd_divergence as simd;

/// A divergence between the policy's distribution p and another distribution q, at one token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Divergence {
    /// KL(p ‖ q) = Σ p·(log p − log q): mode-seeking. Derivative by the logits of p: p·(log p − log q − D).
    ReverseKl,
    /// KL(q ‖ p) = Σ q·(log q − log p): mass-covering. Derivative: p − q.
    ForwardKl,
    /// −Σ q·log p: the forward divergence plus the entropy of q, which does not depend on parameters. Derivative: p − q.
    CrossEntropy,
    /// The generalised Jensen-Shannon divergence (Agarwal et al. 2023, arXiv:2306.13649): β·KL(q ‖ m) + (1 − β)·KL(p ‖ m) with
    /// m = (1 − β)·p + β·q, 0 < β < 1. Derivative: (1 − β)·p·(log p − log m − KL(p ‖ m)).
    Jsd { beta: f32 },
}

impl Divergence {
    /// The generalised Jensen-Shannon divergence as in TRL's GKD: β = 0 is the forward divergence, β = 1 the reverse one.
    pub fn jsd(beta: f64) -> Self {
        match beta {
            0.0 => Self::ForwardKl,
            1.0 => Self::ReverseKl,
            beta => Self::Jsd { beta: beta as f32 },
        }
    }

    /// Computes, for a row of logits x of p and y of q, its part of the divergence and of the additional sum for the derivative.
    pub(super) fn row(self, x: &[f32], y: &[f32], pq: (LogSum, LogSum)) -> [f32; 2] {
        match self {
            Self::ReverseKl => [simd::kl_row(x, y, pq), 0.0],
            Self::ForwardKl | Self::CrossEntropy => [simd::kl_row(y, x, (pq.1, pq.0)), 0.0],
            Self::Jsd { beta } => {
                let parts = simd::jsd_row(x, y, pq, beta);
                [parts.0, parts.1]
            }
        }
    }

    /// Turns the logits x of p into the gradient of g_logp·log p(target) + g_H·H + g_D·D, in place, without the one-hot term.
    /// `kl`: the gradient of D, and D itself (for Jensen-Shannon KL(p ‖ m)).
    pub(super) fn backward_row(
        self,
        x: &mut [f32],
        y: &[f32],
        pq: (LogSum, LogSum),
        g_logp: f32,
        entropy: (f32, f32),
        kl: (f32, f32),
    ) {
        match self {
            Self::ReverseKl => simd::dlogits_kl_row(x, y, pq, g_logp, entropy, kl),
            Self::ForwardKl | Self::CrossEntropy => simd::dlogits_forward_row(x, y, pq, g_logp, entropy, kl.0),
            Self::Jsd { beta } => simd::dlogits_jsd_row(x, y, pq, g_logp, entropy, kl, beta),
        }
    }

    /// The divergence of each row of log-probabilities, [rows, 1], by the formulas of the row kernels.
    pub(super) fn composed(self, lp: &Tensor<2>, lq: &Tensor<2>) -> Tensor<2> {
        let (p, q) = (lp.clone().exp(), lq.clone().exp());
        match self {
            Self::ReverseKl => composed_kl(&p, &q, lp.clone() - lq.clone()),
            Self::ForwardKl => composed_kl(&q, &p, lq.clone() - lp.clone()),
            Self::CrossEntropy => (q * lp.clone()).sum_dim(1).neg(),
            Self::Jsd { beta } => {
                let [log_p_m, log_q_m] = from_mixture(lp, lq, beta);
                (q * log_q_m * beta + p * log_p_m * (1.0 - beta)).sum_dim(1)
            }
        }
    }

    /// The derivative of [`Self::composed`] by the logits of p, times `g`, [rows, 1].
    pub(super) fn composed_gradient(self, lp: &Tensor<2>, lq: &Tensor<2>, g: Tensor<2>) -> Tensor<2> {
        let p = lp.clone().exp();
        match self {
            Self::ReverseKl => p * ((lp.clone() - lq.clone() - self.composed(lp, lq)) * g),
            Self::ForwardKl | Self::CrossEntropy => (p - lq.clone().exp()) * g,
            Self::Jsd { beta } => {
                let [log_p_m, _] = from_mixture(lp, lq, beta);
                let of_p = (p.clone() * log_p_m.clone()).sum_dim(1);
                p * ((log_p_m - of_p) * (g * (1.0 - beta)))
            }
        }
    }
}

/// log(p/m) and log(q/m), by the formulas of the row kernels.
fn from_mixture(lp: &Tensor<2>, lq: &Tensor<2>, beta: f32) -> [Tensor<2>; 2] {
    let d = lp.clone() - lq.clone();
    let minus_size = d.clone().abs().neg();
    let is_larger = d.clone().greater_elem(0.0);
    let weights = minus_size.zeros_like().add_scalar(1.0 - beta).mask_fill(is_larger.clone(), beta);
    let l = ((minus_size.exp() - 1.0) * weights).log1p();
    let log_q_m = l.clone().neg().mask_where(is_larger, (d.clone() + l).neg());
    [d + log_q_m.clone(), log_q_m]
}

/// KL of each row, [rows, 1], by the formula of [`simd::kl_row`].
fn composed_kl(p: &Tensor<2>, q: &Tensor<2>, log_ratio: Tensor<2>) -> Tensor<2> {
    (p.clone() * log_ratio + (q.clone() - p.clone())).sum_dim(1)
}

pub(super) fn log_softmax(logits: Tensor<2>) -> Tensor<2> {
    activation::log_softmax(logits, 1)
}
