//! `actor_rollout_ref.{model,actor,ref}`: the policy, its update and its reference.
//! Meaning and defaults: `config/{model,actor,ref}/`.

use super::lora::lora_keys;
use super::optim::OptimConfig;
use super::rollout::RolloutConfig;
use super::types::{Dtype, Location, ModelInit, OneOrMany, OpenMapping, choices};
use serde::{Deserialize, Serialize};

/// The policy and everything that runs it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActorRolloutRefConfig {
    pub model: ModelConfig,
    pub actor: ActorConfig,
    #[serde(rename = "ref")]
    pub reference: RefConfig,
    pub rollout: RolloutConfig,
    pub nccl_timeout: u64,
}

/// The policy's model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    pub path: Location,
    pub override_config: OpenMapping,
    pub init: ModelInit,
    pub dtype: Dtype,
    pub enable_gradient_checkpointing: bool,
    pub lora_rank: usize,
    pub lora_alpha: f64,
    pub target_modules: OneOrMany<String>,
    pub exclude_modules: Option<OneOrMany<String>>,
    pub lora_adapter_path: Option<Location>,
    pub load_in_4bit: bool,
    pub bnb_4bit_use_double_quant: bool,
}

lora_keys!(ModelConfig, "actor_rollout_ref.model");

/// The update of the policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActorConfig {
    pub optim: OptimConfig,
    pub ppo_mini_batch_size: usize,
    pub ppo_micro_batch_size_per_gpu: Option<usize>,
    pub use_dynamic_bsz: bool,
    pub ppo_max_token_len_per_gpu: usize,
    pub grad_clip: f64,
    pub clip_ratio: f64,
    pub clip_ratio_low: Option<f64>,
    pub clip_ratio_high: Option<f64>,
    pub clip_ratio_c: f64,
    pub loss_agg_mode: String,
    pub loss_scale_factor: Option<f64>,
    pub policy_loss: PolicyLossConfig,
    pub tau_pos: f64,
    pub tau_neg: f64,
    pub entropy_coeff: f64,
    pub use_adaptive_entropy: bool,
    pub entropy_target: f64,
    pub entropy_coef_delta: f64,
    pub entropy_coef_min: f64,
    pub entropy_coef_max: f64,
    pub use_kl_loss: bool,
    pub kl_loss_coef: f64,
    pub kl_loss_type: String,
    pub use_bias_correction_kl: bool,
    pub calculate_sum_pi_squared: bool,
    pub ppo_epochs: usize,
    pub shuffle: bool,
    pub data_loader_seed: Option<u64>,
    pub checkpoint: CheckpointConfig,
}

impl ActorConfig {
    /// Returns the lower clip range: `clip_ratio_low`, or `clip_ratio` if it is unset.
    pub fn clip_low(&self) -> f64 {
        self.clip_ratio_low.unwrap_or(self.clip_ratio)
    }

    /// Returns the upper clip range: `clip_ratio_high`, or `clip_ratio` if it is unset.
    pub fn clip_high(&self) -> f64 {
        self.clip_ratio_high.unwrap_or(self.clip_ratio)
    }
}

/// The policy loss and the options of its formulas.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyLossConfig {
    pub loss_mode: String,
    pub path: Option<Location>,
    pub delta: Option<f64>,
    pub top_entropy_quantile: f64,
    pub off_policy_mask_threshold: Option<f64>,
    pub clip_cov_ratio: f64,
    pub clip_cov_lb: f64,
    pub clip_cov_ub: f64,
    pub kl_cov_ratio: f64,
    pub ppo_kl_coef: f64,
    pub dro_beta: Option<f64>,
    pub vespo_k_pos: f64,
    pub vespo_lambda_pos: f64,
    pub vespo_k_neg: f64,
    pub vespo_lambda_neg: f64,
    pub anchor: RatioAnchor,
    pub adv_tau: f64,
    pub kl_tau: f64,
    pub ipo_threshold: f64,
    pub dpo_loss_type: String,
    pub dpo_beta: f64,
    pub a2po_beta: f64,
}

choices! {
    /// The policy that the ratio of a policy loss compares with.
    pub enum RatioAnchor {
        Old = "old",
        Rollout = "rollout",
    }
}

/// The contents of a checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointConfig {
    pub save_contents: Vec<CheckpointContent>,
    pub load_contents: Vec<CheckpointContent>,
}

choices! {
    /// One part of a checkpoint.
    pub enum CheckpointContent {
        Model = "model",
        Optimizer = "optimizer",
        /// The other state that a run needs to resume: random state, data cursor, controllers.
        Extra = "extra",
        HfModel = "hf_model",
    }
}

/// The weights of the reference model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefModelConfig {
    pub path: Option<Location>,
}

/// The reference model: frozen, or following the policy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefConfig {
    pub model: RefModelConfig,
    pub log_prob_micro_batch_size_per_gpu: Option<usize>,
    pub log_prob_use_dynamic_bsz: bool,
    pub log_prob_max_token_len_per_gpu: usize,
    pub sync_ref_model: bool,
    pub ref_model_mixup_alpha: f64,
    pub ref_model_sync_steps: u64,
    /// True if the policy loss itself compares with the reference. It follows from `loss_mode` and is not a setting.
    #[serde(skip)]
    pub(crate) is_in_loss: bool,
}
