//! Supervised fine-tuning. Meaning and defaults: `config/sft_trainer.yaml`.

use super::actor::CheckpointConfig;
use super::data::Truncation;
use super::lora::lora_keys;
use super::optim::SftOptimConfig;
use super::trainer::{OnNonfinite, ResumeKeys, ResumeMode};
use super::types::{Device, Dtype, Frequency, Init, Location, OneOrMany, Open};
use serde::{Deserialize, Serialize};

/// Everything that `trainer sft` reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SftConfig {
    pub data: SftDataConfig,
    pub model: SftModelConfig,
    pub optim: SftOptimConfig,
    pub checkpoint: CheckpointConfig,
    pub trainer: SftTrainerConfig,
}

/// The examples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SftDataConfig {
    pub train_batch_size: usize,
    pub micro_batch_size_per_gpu: usize,
    pub use_dynamic_bsz: bool,
    pub max_token_len_per_gpu: usize,
    pub train_files: OneOrMany<Location>,
    pub val_files: Option<OneOrMany<Location>>,
    pub messages_key: Option<String>,
    pub tools_key: String,
    pub enable_thinking_key: String,
    pub prompt_key: String,
    pub response_key: String,
    pub prompt_dict_keys: Option<OneOrMany<String>>,
    pub response_dict_keys: Option<OneOrMany<String>>,
    pub max_length: usize,
    pub truncation: Truncation,
    pub train_max_samples: i64,
    pub val_max_samples: i64,
    pub shuffle: bool,
    pub seed: Option<u64>,
    pub apply_chat_template_kwargs: Open,
    pub chat_template_date: Option<String>,
}

/// The model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SftModelConfig {
    pub path: Location,
    pub init: Init,
    pub dtype: Dtype,
    pub enable_gradient_checkpointing: bool,
    pub tokenizer_path: Option<Location>,
    pub custom_chat_template: Option<String>,
    pub lora_rank: usize,
    pub lora_alpha: f64,
    pub target_modules: OneOrMany<String>,
    pub exclude_modules: Option<OneOrMany<String>>,
    pub lora_adapter_path: Option<Location>,
}

lora_keys!(SftModelConfig, "model");

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
    pub save_freq: Frequency,
    pub test_freq: Frequency,
    pub eval_delay: u64,
    pub seed: u64,
    pub device: Device,
    pub resume_mode: ResumeMode,
    pub resume_from_path: Option<Location>,
    pub max_ckpt_to_keep: Option<usize>,
    pub on_nonfinite: OnNonfinite,
}

impl SftTrainerConfig {
    pub fn resume(&self) -> ResumeKeys {
        let (dir, from) = (self.default_local_dir.as_path().to_owned(), self.resume_from_path.clone());
        ResumeKeys { dir, mode: self.resume_mode, from }
    }
}
