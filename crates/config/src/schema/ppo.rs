//! The configuration of `trainer` for reinforcement learning. Meaning and defaults: `config/ppo_trainer.yaml`.

use serde::{Deserialize, Serialize};

use super::actor::ActorRolloutRefConfig;
use super::algorithm::AlgorithmConfig;
use super::critic::CriticConfig;
use super::data::DataConfig;
use super::distillation::DistillationConfig;
use super::reward::{CustomRewardFunctionConfig, RewardConfig, RewardKeys, RewardModelConfig};
use super::trainer::TrainerConfig;
use super::types::Dtype;

/// The key of the advantage estimator.
pub const ADV_ESTIMATOR: &str = "algorithm.adv_estimator";

/// The key of the policy loss.
pub const LOSS_MODE: &str = "actor_rollout_ref.actor.policy_loss.loss_mode";
/// The setting of the file with the user's policy loss.
pub const LOSS_FILE: &str = "actor_rollout_ref.actor.policy_loss.path";

/// The configuration of `trainer` for reinforcement learning.
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
    pub distillation: DistillationConfig,
    pub trainer: TrainerConfig,
}

impl PpoConfig {
    /// True if there is a critic (verl's `need_critic`). If `critic.enable` is null, the estimator decides at loading. Without
    /// advantages there is no critic.
    pub fn has_critic(&self) -> bool {
        self.critic.enable == Some(true) && self.reads_advantages()
    }

    /// True if the policy loss, or a KL term in the loss or in the reward, uses a reference.
    pub fn has_reference(&self) -> bool {
        let is_in_loss = self.actor_rollout_ref.reference.is_in_loss && self.reads_advantages();
        is_in_loss || self.actor_rollout_ref.actor.use_kl_loss || self.has_kl_in_reward()
    }

    /// True if the run validates at some step.
    pub fn validates(&self) -> bool {
        let trainer = &self.trainer;
        self.data.val_files.is_some() && (!trainer.test_freq.is_never() || trainer.val_before_train || trainer.val_only)
    }

    /// Returns the number formats of the models of a run, with their keys.
    pub fn dtypes(&self) -> Vec<(&'static str, Dtype)> {
        let policy = ("actor_rollout_ref.model.dtype", self.actor_rollout_ref.model.dtype);
        let critic = self.has_critic().then_some(("critic.model.dtype", self.critic.model.dtype));
        let judge = self.reward_model.enable.then_some(("reward_model.model.dtype", self.reward_model.model.dtype));
        [policy].into_iter().chain(critic).chain(judge).collect()
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
