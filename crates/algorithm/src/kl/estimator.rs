//! The entry of a KL estimator, and the longer formulas.

use burn::tensor::Tensor;

/// A row of [`KL_ESTIMATORS`](super::KL_ESTIMATORS).
pub struct KlEstimator {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub doc: &'static str,
    /// The estimate from d = log π − log π_ref; `None` for the divergence itself, which the model computes.
    pub(super) forward: Option<fn(d: Tensor<1>) -> Tensor<1>>,
}

pub(super) fn k2(d: Tensor<1>) -> Tensor<1> {
    d.square() * 0.5
}

pub(super) fn k3(d: Tensor<1>) -> Tensor<1> {
    let x = d.neg().clamp(-20.0, 20.0);
    (x.clone().exp() - x - 1.0).clamp(-10.0, 10.0)
}
