//! `algorithm.*`: from rewards to advantages. Meaning and defaults: `config/algorithm/default.yaml`.

use super::types::{Location, NumberOrText, choices};
use serde::{Deserialize, Serialize};

/// The advantage estimator and the KL term of the rewards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlgorithmConfig {
    pub gamma: f64,
    pub lam: f64,
    pub adv_estimator: String,
    pub custom_adv_estimator: CustomAdvEstimatorConfig,
    pub rae_decay: f64,
    pub a2po: A2poConfig,
    pub norm_adv_by_std_in_grpo: bool,
    pub use_kl_in_reward: bool,
    pub kl_penalty: String,
    pub kl_ctrl: KlControllerConfig,
    pub scale_rewards: ScaleRewards,
    pub gdpo_reward_keys: Option<Vec<String>>,
    pub gdpo_reward_weights: Option<Vec<f64>>,
    pub post_processing: PostProcessingConfig,
    pub missing_eos_penalty: Option<f64>,
    pub stop_properly_penalty_coef: Option<f64>,
    pub length_penalty: LengthPenaltyConfig,
    pub mask_truncated_completions: bool,
    pub normalize_reward: bool,
    pub reward_clip_range: Option<[f64; 2]>,
    pub baselined_clip_range: [f64; 2],
    pub turn_rewards: TurnRewards,
    pub whiten_rewards: bool,
    pub normalize_advantages: AdvantageNormalization,
    pub filter_groups: FilterGroupsConfig,
    pub echo: EchoConfig,
    pub use_pf_ppo: bool,
    pub pf_ppo: PfPpoConfig,
    pub rollout_correction: Option<RolloutCorrectionConfig>,
}

/// The user's own advantage estimator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CustomAdvEstimatorConfig {
    pub path: Option<Location>,
}

/// Optimal values of the training prompts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct A2poConfig {
    pub num_value_samples: usize,
    pub beta1: f64,
    pub filter_all_incorrect: bool,
}

/// The user's own function that changes the scores of a batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PostProcessingConfig {
    pub path: Option<Location>,
    pub name: String,
}

choices! {
    /// The use of rewards that tools, users and environments give within a conversation.
    pub enum TurnRewards {
        /// Only reward functions get these rewards.
        Ignore = "ignore",
        /// Their sum is added to the score.
        Sum = "sum",
        /// Each is added to the rewards at the token that earned it.
        Place = "place",
    }
}

choices! {
    /// The standard deviation that `trl_grpo` divides by.
    pub enum ScaleRewards {
        Group = "group",
        Batch = "batch",
        None = "none",
    }
}

choices! {
    /// The set over which advantages are normalised to mean 0 and standard deviation 1.
    pub enum AdvantageNormalization {
        None = "none",
        Sequences = "sequences",
        Tokens = "tokens",
    }
}

/// Dynamic sampling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilterGroupsConfig {
    pub enable: bool,
    pub metric: Option<String>,
    pub max_num_gen_batches: i64,
    pub tolerance: f64,
    pub mean_range: Option<[f64; 2]>,
}

/// Penalty for the length of responses.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LengthPenaltyConfig {
    pub num_output_tokens_weight: Option<f64>,
    pub num_input_tokens_weight: Option<f64>,
    pub num_turns_weight: Option<f64>,
}

/// The likelihood of what the environment wrote.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EchoConfig {
    pub enable: bool,
    pub alpha: f64,
    pub roles: Vec<EchoRole>,
}

choices! {
    /// A writer of messages in the environment of a policy.
    pub enum EchoRole {
        Tool = "tool",
        User = "user",
    }
}

/// Resampling of a batch by score.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PfPpoConfig {
    pub reweight_method: String,
    pub weight_pow: f64,
}

/// Correction for the difference between generation and training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RolloutCorrectionConfig {
    pub rollout_is: Option<String>,
    pub rollout_is_threshold: Option<NumberOrText>,
    pub rollout_is_threshold_lower: Option<f64>,
    pub rollout_is_batch_normalize: bool,
    pub rollout_rs: Option<String>,
    pub rollout_rs_threshold: Option<NumberOrText>,
    pub rollout_rs_threshold_lower: Option<f64>,
    pub rollout_token_veto_threshold: Option<f64>,
    pub count_rejected: bool,
    pub bypass_mode: bool,
    pub loss_type: BypassLossType,
}

choices! {
    /// The loss in `bypass_mode`.
    pub enum BypassLossType {
        PpoClip = "ppo_clip",
        Reinforce = "reinforce",
    }
}

/// The weight of the KL term of the rewards.
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
    /// The controller of the weight.
    pub enum KlControllerKind {
        Fixed = "fixed",
        Adaptive = "adaptive",
    }
}
