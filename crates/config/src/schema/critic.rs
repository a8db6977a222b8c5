//! `critic.*`: the value model. Meaning and defaults: `config/critic/dp_critic.yaml`.

use super::actor::CheckpointConfig;
use super::lora::lora_keys;
use super::optim::OptimConfig;
use super::types::{Dtype, Location, ModelInit, OneOrMany, OpenMapping};
use serde::{Deserialize, Serialize};

/// The value model and its update.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CriticConfig {
    pub enable: Option<bool>,
    pub optim: OptimConfig,
    pub model: CriticModelConfig,
    pub ppo_mini_batch_size: usize,
    pub ppo_micro_batch_size_per_gpu: Option<usize>,
    pub forward_micro_batch_size_per_gpu: Option<usize>,
    pub use_dynamic_bsz: bool,
    pub ppo_max_token_len_per_gpu: usize,
    pub forward_max_token_len_per_gpu: usize,
    pub ppo_epochs: usize,
    pub shuffle: bool,
    pub data_loader_seed: Option<u64>,
    pub grad_clip: f64,
    pub cliprange_value: f64,
    pub loss_agg_mode: String,
    pub loss_scale_factor: Option<f64>,
    pub checkpoint: CheckpointConfig,
}

/// The value model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CriticModelConfig {
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

lora_keys!(CriticModelConfig, "critic.model");
