//! The entropy bonus whose weight follows the entropy, so that the entropy stays near a target.
//!
//! Source: He et al. 2025, Skywork Open Reasoner 1, arXiv:2505.22312. TRL: GRPOTrainer, use_adaptive_entropy.
//!
//! Deviation: the entropy is a mean over the tokens of the whole mini-batch; TRL averages the means of its micro-batches, so that
//! the bonus depends on how the mini-batch is cut. Weight and entropy are in the checkpoint; TRL starts again after a restart.

use serde::{Deserialize, Serialize};

/// The settings of the weight. Entropies are in nats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EntropyTarget {
    /// The bonus acts while the entropy is at most this.
    pub target: f64,
    /// The change of the weight after each update.
    pub delta: f64,
    /// The bounds of the weight.
    pub min: f64,
    pub max: f64,
}

/// The weight and the entropy of the last update; serialised into checkpoints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdaptiveEntropy {
    coef: f64,
    /// `None` before the first update, which has no bonus.
    last: Option<f64>,
}

/// The bonus of one mini-batch: weight·mean entropy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EntropyBonus {
    pub weight: f64,
    /// The tokens of the whole mini-batch that the mean is over.
    pub tokens: f64,
}

impl AdaptiveEntropy {
    /// Starts with this weight.
    pub fn new(coef: f64) -> Self {
        Self { coef, last: None }
    }

    /// Returns the weight, also where it does not act.
    pub fn coef(&self) -> f64 {
        self.coef
    }

    /// Returns the weight of the next update: 0 if the entropy of the last one was above the target.
    pub fn weight(&self, settings: &EntropyTarget) -> f64 {
        if self.last.is_some_and(|entropy| entropy <= settings.target) { self.coef } else { 0.0 }
    }

    /// Moves the weight after an update whose mean entropy was this.
    pub fn update(&mut self, entropy: f64, settings: &EntropyTarget) {
        // A NaN would stay.
        if entropy.is_finite() {
            let EntropyTarget { target, delta, min, max } = *settings;
            self.coef = if entropy <= target { (self.coef + delta).min(max) } else { (self.coef - delta).max(min) };
            self.last = Some(entropy);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bonus_acts_below_the_target_and_its_weight_stays_within_the_bounds() {
        let settings = EntropyTarget { target: 1.0, delta: 0.1, min: 0.05, max: 0.2 };
        let mut entropy = AdaptiveEntropy::new(0.1);
        assert_eq!(entropy.weight(&settings), 0.0);
        let mut seen = Vec::new();
        for measured in [0.5, 0.5, f64::NAN, 1.5, 1.5, 1.0] {
            entropy.update(measured, &settings);
            seen.push(((100.0 * entropy.coef()).round(), entropy.weight(&settings) > 0.0));
        }
        assert_eq!(seen, [(20.0, true), (20.0, true), (20.0, true), (10.0, false), (5.0, false), (15.0, true)]);
        let text = serde_json::to_string(&entropy).unwrap();
        assert_eq!(serde_json::from_str::<AdaptiveEntropy>(&text).unwrap(), entropy);
    }
}
