//! A chosen estimator, with or without `+`.

use burn::tensor::{Device, Tensor};

use super::estimator::{KlEstimator, k2};
use crate::column;
use crate::rounding::settled_tokens;

/// The bound of the ratio whose factor corrects the gradient of a `+` form (OpenRLHF).
const MAX_RATIO: f64 = 10.0;

/// The ratio π/π_old that multiplies the KL term of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KlRatio {
    /// The ratio of each token.
    Token,
    /// The geometric mean over the tokens of a response, for losses with one ratio per response.
    Response,
}

/// A chosen estimator, with or without `+`.
#[derive(Clone, Copy)]
pub struct KlPenalty {
    estimator: &'static KlEstimator,
    straight_through: bool,
    ratio: Option<KlRatio>,
}

impl KlPenalty {
    /// The penalty of an estimator; `straight_through`: with the gradient of k2.
    pub(super) fn new(estimator: &'static KlEstimator, straight_through: bool) -> Self {
        Self { estimator, straight_through, ratio: None }
    }

    /// Corrects the term of a loss for samples of an earlier policy: see [`Self::in_loss`].
    #[must_use]
    pub fn corrected(self, ratio: KlRatio) -> Self {
        Self { ratio: Some(ratio), ..self }
    }

    /// Returns the ratio of the correction, if there is one.
    pub fn ratio(&self) -> Option<KlRatio> {
        self.ratio
    }

    /// Returns the term of a loss for every token, like [`Self::per_token`]; with a correction, `log_ratio` is log(π/π_old) with
    /// its gradient. Without `+`, the estimate is multiplied by the ratio, through which the gradient also flows (TRL
    /// use_bias_correction_kl, slime use-unbiased-kl). With `+`, the value stays, and the gradient is multiplied by the ratio, at most
    /// 10 (OpenRLHF algo.kl.unbiased_gradient).
    ///
    /// # Panics
    /// Like [`Self::per_token`].
    pub fn in_loss(
        &self,
        log_prob: Tensor<1>,
        ref_log_prob: Tensor<1>,
        full_kl: Option<Tensor<1>>,
        log_ratio: Tensor<1>,
    ) -> Tensor<1> {
        let value = self.per_token(log_prob, ref_log_prob, full_kl);
        match (self.ratio, self.straight_through) {
            (None, _) => value,
            (Some(_), false) => value * log_ratio.exp(),
            (Some(_), true) => {
                let factor = log_ratio.exp().detach().clamp_max(MAX_RATIO);
                (value.clone() - value.clone().detach()) * factor + value.detach()
            }
        }
    }

    /// True if the penalty is the divergence over the vocabulary, so that `full_kl` must be given.
    pub fn is_full(&self) -> bool {
        self.estimator.forward.is_none()
    }

    /// Returns the estimate for every token, differentiable in `log_prob` and `full_kl`. Shapes: `[tokens]`.
    ///
    /// # Panics
    /// If [`Self::is_full`] and there is no `full_kl`.
    pub fn per_token(&self, log_prob: Tensor<1>, ref_log_prob: Tensor<1>, full_kl: Option<Tensor<1>>) -> Tensor<1> {
        let reference = settled_tokens(&log_prob, ref_log_prob);
        let d = log_prob - reference;
        let value = match self.estimator.forward {
            Some(forward) => forward(d.clone()),
            None => full_kl.expect("the full divergence comes from the model"),
        };
        if !self.straight_through {
            return value;
        }
        let gradient = k2(d);
        gradient.clone() - gradient.detach() + value.detach()
    }

    /// Returns the estimate for every token of columns on the host and its derivative by `log_prob`; panics like
    /// [`Self::per_token`].
    pub fn with_slopes(&self, log_prob: &[f32], ref_log_prob: &[f32]) -> (Vec<f32>, Vec<f32>) {
        if log_prob.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let device = Device::flex().autodiff();
        let at = column::tensor(log_prob, &device).require_grad();
        let values = self.per_token(at.clone(), column::tensor(ref_log_prob, &device), None);
        let gradients = values.clone().sum().backward();
        let slopes = at.grad(&gradients).map_or_else(|| vec![0.0; log_prob.len()], column::host);
        (column::host(values), slopes)
    }

    /// Returns the estimate for every token of columns on the host, without gradient; panics like [`Self::per_token`].
    pub fn values(&self, log_prob: &[f32], ref_log_prob: &[f32], full_kl: Option<&[f32]>) -> Vec<f32> {
        if log_prob.is_empty() {
            return Vec::new();
        }
        let device = Device::flex();
        let tensor = |values| column::tensor(values, &device);
        column::host(self.per_token(tensor(log_prob), tensor(ref_log_prob), full_kl.map(tensor)))
    }
}
