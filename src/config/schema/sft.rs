//! The supervised stage. Meaning and defaults: `config/sft_trainer.yaml`.

use super::actor::WrapPolicyConfig;
use super::data::Truncation;
use super::trainer::ResumeMode;
use super::types::{Device, Init, Location, OneOrMany, Open};
use serde::{Deserialize, Serialize};

/// Everything that `trainer sft` reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SftConfig {
    pub data: SftDataConfig,
    pub model: SftModelConfig,
    pub optim: SftOptimConfig,
    pub trainer: SftTrainerConfig,
}

/// The examples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SftDataConfig {
    pub train_batch_size: usize,
    pub micro_batch_size_per_gpu: usize,
    pub train_files: OneOrMany<Location>,
    pub val_files: OneOrMany<Location>,
    pub prompt_key: String,
    pub response_key: String,
    pub prompt_dict_keys: Option<OneOrMany<String>>,
    pub response_dict_keys: Option<OneOrMany<String>>,
    pub multiturn: MultiturnConfig,
    pub max_length: usize,
    pub truncation: Truncation,
    pub train_max_samples: i64,
    pub val_max_samples: i64,
    pub shuffle: bool,
    pub seed: Option<u64>,
    pub tokenizer: Option<Location>,
}

/// Examples of several turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MultiturnConfig {
    pub enable: bool,
    pub messages_key: String,
}

/// The model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SftModelConfig {
    pub partial_pretrain: Location,
    pub init: Init,
    pub fsdp_config: SftFsdpConfig,
    pub external_lib: Option<OneOrMany<String>>,
    pub enable_gradient_checkpointing: bool,
    pub trust_remote_code: bool,
    pub lora_rank: usize,
    pub lora_alpha: f64,
    pub target_modules: OneOrMany<String>,
    pub use_liger: bool,
}

/// Sharding of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SftFsdpConfig {
    pub model_dtype: String,
    pub wrap_policy: WrapPolicyConfig,
    pub cpu_offload: bool,
    pub offload_params: bool,
}

/// AdamW and its schedule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SftOptimConfig {
    pub optimizer: String,
    pub optimizer_impl: String,
    pub lr: f64,
    pub betas: [f64; 2],
    pub eps: f64,
    pub weight_decay: f64,
    pub lr_warmup_steps_ratio: f64,
    pub clip_grad: f64,
    pub lr_scheduler: String,
    pub min_lr_ratio: f64,
    pub num_cycles: f64,
    pub override_optimizer_config: Option<Open>,
}

/// Length, name, logs, checkpoints and device of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SftTrainerConfig {
    pub total_epochs: usize,
    pub total_training_steps: Option<usize>,
    pub project_name: String,
    pub experiment_name: String,
    pub logger: OneOrMany<String>,
    pub default_local_dir: Location,
    pub default_hdfs_dir: Option<Location>,
    pub save_freq: i64,
    pub test_freq: i64,
    pub seed: u64,
    pub device: Device,
    pub resume_mode: ResumeMode,
    pub resume_from_path: Option<Location>,
    pub max_ckpt_to_keep: Option<usize>,
    pub nnodes: usize,
    pub n_gpus_per_node: usize,
}
