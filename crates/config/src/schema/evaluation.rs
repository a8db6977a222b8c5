//! Scores of the responses in a file. Meaning and defaults: `config/evaluation.yaml`.

use super::loadable::Schema;
use super::location_setting::LocationSetting;
use super::reward::{CustomRewardFunctionConfig, RewardConfig, RewardKeys};
use super::types::{Location, OneOrMany};
use super::validate_reward;
use crate::{Kind, Report};
use serde::{Deserialize, Serialize};

impl Schema for EvalConfig {
    const KIND: Kind = Kind::Evaluation;

    fn locations(&mut self) -> Vec<LocationSetting<'_>> {
        self.all_locations()
    }

    fn validate(&self, report: &mut Report) {
        validate_reward::keys(&self.rewards(), report);
    }
}

/// The configuration of `trainer eval`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvalConfig {
    pub data: EvalDataConfig,
    pub reward_model: EvalRewardModelConfig,
    pub reward: RewardConfig,
    pub custom_reward_function: CustomRewardFunctionConfig,
}

impl EvalConfig {
    /// Returns the settings that make up a score.
    pub fn rewards(&self) -> RewardKeys<'_> {
        RewardKeys {
            custom: &self.custom_reward_function,
            reward: &self.reward,
            manager: None,
            model: None,
            remote_url: self.reward_model.remote_url.as_ref(),
            reward_functions: self.reward_model.reward_functions.as_ref(),
            reward_weights: self.reward_model.reward_weights.as_deref(),
        }
    }
}

/// The reward functions that score the responses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvalRewardModelConfig {
    pub remote_url: Option<OneOrMany<String>>,
    pub reward_functions: Option<OneOrMany<String>>,
    pub reward_weights: Option<Vec<f64>>,
}

/// The responses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvalDataConfig {
    pub path: OneOrMany<Location>,
    pub response_key: String,
    pub data_source_key: Option<String>,
    pub reward_model_key: String,
    pub label_key: Option<String>,
    pub prompt_key: String,
    pub apply_chat_template: bool,
    pub tokenizer: Option<Location>,
    pub output_path: Option<Location>,
}
