//! The typed configuration. Meanings, allowed values and defaults are in the YAML files of `config/`, and only there.

mod actor;
mod algorithm;
mod critic;
mod data;
mod evaluation;
mod generation;
mod lora;
mod optim;
mod reward;
mod rollout;
mod sampling;
mod sft;
mod trainer;
mod types;
mod validate;
mod validate_algorithm;
mod validate_critic;
mod validate_reward;
mod validate_sft;

pub use actor::*;
pub use algorithm::*;
pub use critic::*;
pub use data::*;
pub use evaluation::*;
pub use generation::*;
pub use lora::LoraKeys;
pub use optim::*;
pub use reward::*;
pub use rollout::*;
pub use sampling::SamplingKeys;
pub use sft::*;
pub use trainer::*;
pub use types::{Device, Dtype, Frequency, Init, Location, NumberOrText, OneOrMany, Open};

use super::compat::Kind;
use super::{Choices, Report};
use crate::util::choice::Need;
use serde::{Deserialize, Serialize};

/// The key of the advantage estimator.
pub const ADV_ESTIMATOR: &str = "algorithm.adv_estimator";

/// The key of the policy loss.
pub const LOSS_MODE: &str = "actor_rollout_ref.actor.policy_loss.loss_mode";

/// A configuration that [`super::load`] can load.
pub trait Schema: serde::de::DeserializeOwned {
    /// The built-in file that holds all its defaults.
    const DEFAULT_NAME: &'static str;
    /// The kind of configuration, which determines verl's counterpart.
    const KIND: Kind;

    /// Fills in what follows from the chosen names alone.
    fn completed(self, _choices: &Choices) -> Self {
        self
    }

    /// Checks the rules that the types cannot express: ranges, keys that must agree, and values that are not available.
    fn validate(&self, report: &mut Report);
}

/// Everything that `trainer` reads for reinforcement learning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PpoConfig {
    pub data: DataConfig,
    pub actor_rollout_ref: ActorRolloutRefConfig,
    pub critic: CriticConfig,
    pub reward_model: RewardModelConfig,
    pub reward: RewardConfig,
    pub custom_reward_function: CustomRewardFunctionConfig,
    pub algorithm: AlgorithmConfig,
    pub trainer: TrainerConfig,
}

impl PpoConfig {
    /// Says whether there is a critic (verl's `need_critic`): where `critic.enable` does not, the estimator has decided when this was
    /// loaded.
    pub fn has_critic(&self) -> bool {
        self.critic.enable == Some(true)
    }

    /// Returns the settings that make up a score.
    pub fn rewards(&self) -> RewardKeys<'_> {
        RewardKeys {
            custom: &self.custom_reward_function,
            reward: &self.reward,
            manager: self.reward_model.reward_manager,
            model: Some(self.reward_model.enable),
            remote_url: self.reward_model.remote_url.as_ref(),
            reward_functions: self.reward_model.reward_functions.as_ref(),
            reward_weights: self.reward_model.reward_weights.as_deref(),
        }
    }
}

impl Schema for PpoConfig {
    const DEFAULT_NAME: &'static str = "ppo_trainer";
    const KIND: Kind = Kind::Rl;

    fn completed(mut self, choices: &Choices) -> Self {
        let needed = choices.needs(ADV_ESTIMATOR, &self.algorithm.adv_estimator, Need::Critic);
        self.critic.enable.get_or_insert(needed);
        self
    }

    fn validate(&self, report: &mut Report) {
        validate::ppo(self, report);
    }
}

impl Schema for SftConfig {
    const DEFAULT_NAME: &'static str = "sft_trainer";
    const KIND: Kind = Kind::Sft;

    fn validate(&self, report: &mut Report) {
        validate_sft::sft(self, report);
    }
}

impl Schema for GenerationConfig {
    const DEFAULT_NAME: &'static str = "generation";
    const KIND: Kind = Kind::Generation;

    fn validate(&self, report: &mut Report) {
        self.check(report);
    }
}

impl Schema for EvalConfig {
    const DEFAULT_NAME: &'static str = "evaluation";
    const KIND: Kind = Kind::Evaluation;

    fn validate(&self, report: &mut Report) {
        validate_reward::keys(&self.rewards(), report);
    }
}
