//! KL estimators: how far the policy has moved from the reference, per token, from two log-probabilities.
//!
//! One line per estimator in [`KL_ESTIMATORS`]. Any name followed by `+` keeps the value of its estimator and takes the
//! gradient of k2, whose expectation is the true gradient of the KL divergence. (verl's 2026-01 edition documents the `+`
//! forms and raises on them; here they work.)

mod controller;
mod estimator;
mod penalty;
mod reward;

use estimator::{k2, k3};

pub use controller::KlController;
pub use estimator::KlEstimator;
pub use penalty::{KlPenalty, KlRatio};
pub use reward::{KlInReward, apply_kl_in_reward};

/// Every estimator that `actor.kl_loss_type` and `algorithm.kl_penalty` can name, each also with `+`.
pub static KL_ESTIMATORS: &[KlEstimator] = &[
    KlEstimator {
        name: "k1",
        aliases: &["kl"],
        doc: "The log-ratio: unbiased, of either sign; as a loss its gradient has expectation 0, so use k1+ there.\n\
              Formula: d = log π − log π_ref; a d within the rounding of float32 is 0.\nSource: Schulman 2020, Approximating KL divergence.\nverl: kl_penalty.",
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

/// Returns the penalty with this name or alias, a trailing `+` included.
pub fn find(name: &str) -> Option<KlPenalty> {
    let base = name.strip_suffix('+').unwrap_or(name);
    let estimator = KL_ESTIMATORS.iter().find(|e| e.name == base || e.aliases.contains(&base))?;
    Some(KlPenalty::new(estimator, base != name))
}

/// Returns all names and aliases, each also with `+`, for messages and documentation.
pub fn names() -> Vec<String> {
    let plain = KL_ESTIMATORS.iter().flat_map(|e| std::iter::once(&e.name).chain(e.aliases));
    plain.flat_map(|name| [name.to_string(), format!("{name}+")]).collect()
}
