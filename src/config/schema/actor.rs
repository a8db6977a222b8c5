//! `actor_rollout_ref.{model,actor,ref}`: the policy, its update and its reference.
//! Meaning and defaults: `config/{model,actor,ref}/`.

use super::optim::OptimConfig;
use super::rollout::RolloutConfig;
use super::types::{Init, Location, OneOrMany, Open, choices};
use serde::{Deserialize, Serialize};

/// The policy and everything that runs it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActorRolloutRefConfig {
    pub hybrid_engine: bool,
    pub model: ModelConfig,
    pub actor: ActorConfig,
    #[serde(rename = "ref")]
    pub reference: RefConfig,
    pub rollout: RolloutConfig,
}

/// The policy's model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    pub path: Location,
    pub init: Init,
    pub external_lib: Option<OneOrMany<String>>,
    pub override_config: ModelOverrideConfig,
    pub enable_gradient_checkpointing: bool,
    pub enable_activation_offload: bool,
    pub trust_remote_code: bool,
    pub use_remove_padding: bool,
    pub use_fused_kernels: bool,
    pub fused_kernel_options: FusedKernelConfig,
}

/// Changes to the model's own config.json.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelOverrideConfig {
    pub attn_implementation: String,
    pub model_config: Open,
    pub moe_config: MoeConfig,
}

/// Mixture-of-experts settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MoeConfig {
    pub freeze_moe_router: bool,
}

/// Choice of fused kernels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FusedKernelConfig {
    pub impl_backend: String,
}

/// How the policy is updated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActorConfig {
    pub strategy: Strategy,
    pub optim: OptimConfig,
    pub ppo_mini_batch_size: usize,
    pub ppo_micro_batch_size: Option<usize>,
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
    pub entropy_coeff: f64,
    pub calculate_entropy: bool,
    pub use_kl_loss: bool,
    pub kl_loss_coef: f64,
    pub kl_loss_type: String,
    pub ppo_epochs: usize,
    pub shuffle: bool,
    pub data_loader_seed: Option<u64>,
    pub use_torch_compile: bool,
    pub ulysses_sequence_parallel_size: usize,
    pub fsdp_config: FsdpConfig,
    pub checkpoint: CheckpointConfig,
}

impl ActorConfig {
    /// The lower clip range: `clip_ratio_low`, or `clip_ratio` where that is not set.
    pub fn clip_low(&self) -> f64 {
        self.clip_ratio_low.unwrap_or(self.clip_ratio)
    }

    /// The upper clip range: `clip_ratio_high`, or `clip_ratio` where that is not set.
    pub fn clip_high(&self) -> f64 {
        self.clip_ratio_high.unwrap_or(self.clip_ratio)
    }
}

/// The formula of the policy loss.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyLossConfig {
    pub loss_mode: String,
}

choices! {
    /// verl's training back ends; none of them exists here.
    pub enum Strategy {
        Fsdp = "fsdp",
        Fsdp2 = "fsdp2",
        Megatron = "megatron",
    }
}

/// Sharding of a trained model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FsdpConfig {
    pub wrap_policy: WrapPolicyConfig,
    pub param_offload: bool,
    pub optimizer_offload: bool,
    pub fsdp_size: i64,
}

/// What is sharded as one unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrapPolicyConfig {
    pub min_num_params: u64,
}

/// What a checkpoint holds.
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
        /// Everything else that a run needs to go on: random state, data cursor, controllers.
        Extra = "extra",
        HfModel = "hf_model",
    }
}

/// The frozen reference model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefConfig {
    pub log_prob_micro_batch_size: Option<usize>,
    pub log_prob_micro_batch_size_per_gpu: Option<usize>,
    pub log_prob_use_dynamic_bsz: bool,
    pub log_prob_max_token_len_per_gpu: usize,
    pub ulysses_sequence_parallel_size: usize,
    pub fsdp_config: RefFsdpConfig,
}

/// Sharding of a model that is only run forward.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RefFsdpConfig {
    pub param_offload: bool,
    pub wrap_policy: WrapPolicyConfig,
}
