//! β, the coefficient of the KL penalty in the reward: constant, or steered towards a target KL.

use serde::{Deserialize, Serialize};

/// `algorithm.kl_ctrl`; serialised into checkpoints, so that a resumed run keeps its β.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum KlController {
    /// β never changes.
    Fixed { coef: f64 },
    /// β grows while the KL is above `target` and shrinks while it is below, by at most 20 % per `horizon` trajectories
    /// (Ziegler et al. 2019, arXiv:1909.08593; verl `AdaptiveKLController`).
    Adaptive { coef: f64, target: f64, horizon: f64 },
}

impl KlController {
    /// Returns this controller, made from the settings, with the state of a saved one: an adaptive controller takes over the saved β.
    /// The rest comes from the settings.
    pub fn resumed_from(self, saved: &Self) -> Self {
        match (self, saved) {
            (Self::Adaptive { target, horizon, .. }, Self::Adaptive { coef, .. }) => {
                Self::Adaptive { coef: *coef, target, horizon }
            }
            (own, _) => own,
        }
    }

    /// Returns the present β.
    pub fn coef(&self) -> f64 {
        match *self {
            Self::Fixed { coef } | Self::Adaptive { coef, .. } => coef,
        }
    }

    /// Moves β after a batch of `trajectories` whose mean KL was `current_kl`:
    /// β ← β·(1 + clip(KL/target − 1, ±0.2)·trajectories/horizon).
    pub fn update(&mut self, current_kl: f64, trajectories: usize) {
        // A NaN would stay in β forever.
        if let Self::Adaptive { coef, target, horizon } = self
            && !current_kl.is_nan()
        {
            let error = (current_kl / *target - 1.0).clamp(-0.2, 0.2);
            *coef *= 1.0 + error * trajectories as f64 / *horizon;
        }
    }
}
