//! `reward_model.*` and `custom_reward_function.*`. Meaning and defaults: `config/reward_model/`, `config/ppo_trainer.yaml`.

use super::types::Location;
use serde::{Deserialize, Serialize};

/// The reward manager, and a model that scores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RewardModelConfig {
    pub enable: bool,
    pub model: RewardModelModelConfig,
    pub micro_batch_size_per_gpu: usize,
    pub max_length: Option<usize>,
    pub reward_manager: String,
}

/// The model that scores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RewardModelModelConfig {
    pub input_tokenizer: Option<Location>,
    pub path: Option<Location>,
}

/// A reward function of the user's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CustomRewardFunctionConfig {
    pub path: Option<Location>,
    pub name: String,
}
