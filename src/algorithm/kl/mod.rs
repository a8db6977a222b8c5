//! KL estimators: how far the policy has moved from the reference, per token, from two log-probabilities.
//!
//! One line per estimator in [`KL_ESTIMATORS`]. Any name followed by `+` keeps the value of its estimator and takes the
//! gradient of k2, whose expectation is the true gradient of the KL divergence. (verl's 2026-01 edition documents the `+`
//! forms and raises on them; here they work.)

mod controller;
mod reward;

use burn::tensor::{Device, Tensor};

use super::column;

pub use controller::KlController;
pub use reward::{KlInReward, apply_kl_in_reward};

/// A row of [`KL_ESTIMATORS`].
pub struct KlEstimator {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub doc: &'static str,
    /// The estimate from d = log π − log π_ref; `None` for the divergence itself, which the model computes.
    forward: Option<fn(d: Tensor<1>) -> Tensor<1>>,
}

/// Every estimator that `actor.kl_loss_type` and `algorithm.kl_penalty` can name, each also with `+`.
pub static KL_ESTIMATORS: &[KlEstimator] = &[
    KlEstimator {
        name: "k1",
        aliases: &["kl"],
        doc: "The log-ratio: unbiased, of either sign; as a loss its gradient has expectation 0, so use k1+ there.\n\
              Formula: d = log π − log π_ref.\nSource: Schulman 2020, Approximating KL divergence.\nverl: kl_penalty.",
        forward: Some(|d| d),
    },
    KlEstimator {
        name: "abs",
        aliases: &[],
        doc: "The size of the log-ratio.\nFormula: |d|.\nverl: kl_penalty.",
        forward: Some(|d| d.abs()),
    },
    KlEstimator {
        name: "k2",
        aliases: &["mse"],
        doc: "Half the squared log-ratio: biased in value, its gradient is unbiased.\n\
              Formula: d²/2.\nSource: Schulman 2020, Approximating KL divergence.\nverl: kl_penalty.",
        forward: Some(k2),
    },
    KlEstimator {
        name: "k3",
        aliases: &["low_var_kl"],
        doc: "Unbiased, never negative, of low variance.\n\
              Formula: x = clamp(−d, ±20); clamp(e^x − x − 1, ±10).\nSource: Schulman 2020, Approximating KL divergence.\n\
              verl: kl_penalty.",
        forward: Some(k3),
    },
    KlEstimator {
        name: "full",
        aliases: &[],
        doc: "The divergence itself, over the whole vocabulary: no sampling noise, at the cost of a second head per token.\n\
              Formula: Σ_v π(v)·(log π(v) − log π_ref(v)).\nSource: the definition of KL(π ‖ π_ref).\n\
              verl: kl_penalty.\n\
              Deviation: verl accepts the name and raises NotImplementedError; here it works, and is computed in the head's chunks.",
        forward: None,
    },
];

fn k2(d: Tensor<1>) -> Tensor<1> {
    d.square() * 0.5
}

fn k3(d: Tensor<1>) -> Tensor<1> {
    let x = d.neg().clamp(-20.0, 20.0);
    (x.clone().exp() - x - 1.0).clamp(-10.0, 10.0)
}

/// A chosen estimator, with or without `+`.
#[derive(Clone, Copy)]
pub struct KlPenalty {
    estimator: &'static KlEstimator,
    straight_through: bool,
}

/// Returns the penalty with this name or alias, a trailing `+` included.
pub fn find(name: &str) -> Option<KlPenalty> {
    let base = name.strip_suffix('+').unwrap_or(name);
    let estimator = KL_ESTIMATORS.iter().find(|e| e.name == base || e.aliases.contains(&base))?;
    Some(KlPenalty { estimator, straight_through: base != name })
}

/// Returns all names and aliases, each also with `+`, for messages and documentation.
pub fn names() -> Vec<String> {
    let plain = KL_ESTIMATORS.iter().flat_map(|e| std::iter::once(&e.name).chain(e.aliases));
    plain.flat_map(|name| [name.to_string(), format!("{name}+")]).collect()
}

impl KlPenalty {
    /// True if the penalty is the divergence over the vocabulary, so that `full_kl` must be given.
    pub fn is_full(&self) -> bool {
        self.estimator.forward.is_none()
    }

    /// Returns the estimate for every token, differentiable in `log_prob` and `full_kl`. Shapes: `[tokens]`.
    ///
    /// # Panics
    /// If [`Self::is_full`] and there is no `full_kl`.
    pub fn per_token(&self, log_prob: Tensor<1>, ref_log_prob: Tensor<1>, full_kl: Option<Tensor<1>>) -> Tensor<1> {
        let d = log_prob - ref_log_prob;
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
