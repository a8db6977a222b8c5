//! `algorithm.*`: from rewards to advantages. Meaning and defaults: `config/algorithm/default.yaml`.

use super::types::choices;
use serde::{Deserialize, Serialize};

/// The advantage estimator and the KL term of the rewards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlgorithmConfig {
    pub gamma: f64,
    pub lam: f64,
    pub adv_estimator: String,
    pub norm_adv_by_std_in_grpo: bool,
    pub use_kl_in_reward: bool,
    pub kl_penalty: String,
    pub kl_ctrl: KlControllerConfig,
    pub rollout_correction: RolloutCorrectionConfig,
}

/// Weight of the KL term of the rewards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KlControllerConfig {
    #[serde(rename = "type")]
    pub kind: KlControllerKind,
    pub kl_coef: f64,
    pub horizon: u64,
    pub target_kl: f64,
}

choices! {
    /// Whether the weight moves.
    pub enum KlControllerKind {
        Fixed = "fixed",
        Adaptive = "adaptive",
    }
}

/// Correction for rollouts that another policy generated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RolloutCorrectionConfig {
    pub rollout_is: Option<String>,
    pub rollout_is_threshold: f64,
    pub rollout_rs: Option<String>,
    pub rollout_rs_threshold: Option<f64>,
    pub rollout_rs_threshold_lower: Option<f64>,
    pub rollout_token_veto_threshold: Option<f64>,
}
