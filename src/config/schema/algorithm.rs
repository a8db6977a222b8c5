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
