//! `reward_model.*` and `custom_reward_function.*`. Meaning and defaults: `config/reward_model/`, `config/ppo_trainer.yaml`.

use super::types::{Dtype, Init, Location, OneOrMany, choices};
use serde::{Deserialize, Serialize};

/// The reward manager, and a model that scores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RewardModelConfig {
    pub enable: bool,
    pub model: RewardModelModelConfig,
    pub micro_batch_size_per_gpu: usize,
    pub use_dynamic_bsz: bool,
    pub forward_max_token_len_per_gpu: usize,
    pub max_length: Option<usize>,
    pub reward_manager: Option<RewardManager>,
    pub reward_kwargs: RewardKwargsConfig,
    pub reward_functions: Option<OneOrMany<String>>,
    pub reward_weights: Option<Vec<f64>>,
}

impl RewardModelConfig {
    /// The reward functions that make up the score.
    pub fn functions(&self) -> Vec<String> {
        match &self.reward_functions {
            Some(names) => names.to_vec(),
            None => vec![if self.enable { REWARD_MODEL } else { "data_source" }.to_owned()],
        }
    }
}

/// The reward function that stands for the reward model.
pub const REWARD_MODEL: &str = "reward_model";

choices! {
    /// What gives a response its score.
    pub enum RewardManager {
        Naive = "naive",
        Dapo = "dapo",
    }
}

/// Settings of the reward manager `dapo`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RewardKwargsConfig {
    pub max_resp_len: usize,
    pub overlong_buffer_cfg: OverlongBufferConfig,
}

/// The soft penalty of overlong responses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OverlongBufferConfig {
    pub enable: bool,
    pub len: usize,
    pub penalty_factor: f64,
    pub log: bool,
}

/// The model that scores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RewardModelModelConfig {
    pub input_tokenizer: Option<Location>,
    pub path: Option<Location>,
    pub init: Init,
    pub dtype: Dtype,
}

/// A reward function of the user's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CustomRewardFunctionConfig {
    pub path: Option<Location>,
    pub name: String,
}
