//! The covariance of advantage and log-probability over a mini-batch, by which `clip_cov` and `kl_cov` choose tokens.

use super::MiniBatch;

/// A trained token and its share of the covariance.
pub(super) struct Share {
    pub token: usize,
    pub(crate) covariance: f64,
}

/// Returns (A − mean A)·(log π − mean log π) of each trained token, in their order; the means are over all of them.
pub(super) fn shares(x: &MiniBatch) -> Vec<Share> {
    let trained: Vec<usize> = (0..x.mask.len()).filter(|&t| x.mask[t] != 0.0).collect();
    let column = |values: &[f32]| -> Vec<f64> { trained.iter().map(|&t| f64::from(values[t])).collect() };
    let (advantages, log_prob) = (column(x.advantages), column(x.log_prob));
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let (advantage, level) = (mean(&advantages), mean(&log_prob));
    let covariances = advantages.iter().zip(&log_prob).map(|(a, l)| (a - advantage) * (l - level));
    trained.iter().zip(covariances).map(|(&token, covariance)| Share { token, covariance }).collect()
}

/// Returns the number of tokens in a share of `count`, at least one.
pub(crate) fn how_many(share: f64, count: usize) -> usize {
    ((share * count as f64) as usize).max(1)
}
