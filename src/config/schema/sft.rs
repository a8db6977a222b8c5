//! Supervised fine-tuning. Meaning and defaults: `config/sft_trainer.yaml`.

use super::actor::CheckpointConfig;
use super::data::Truncation;
use super::lora::lora_keys;
use super::optim::OptimConfig;
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

/// [`OptimConfig`](super::OptimConfig) and the largest norm of the gradient, which the actor has beside its `optim`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SftOptimConfig {
    pub optimizer: String,
    pub override_optimizer_config: Open,
    pub lr: f64,
    pub lr_warmup_steps: i64,
    pub lr_warmup_steps_ratio: f64,
    pub min_lr: f64,
    pub min_lr_ratio: f64,
    pub lr_warmup_init: f64,
    pub num_cycles: f64,
    pub power: f64,
    pub timescale: Option<usize>,
    pub stable_ratio: f64,
    pub lr_wsd_decay_steps: Option<usize>,
    pub lr_wsd_decay_style: String,
    pub zero_indexed_step: bool,
    pub lr_scheduler_type: String,
    pub total_training_steps: i64,
    pub weight_decay: f64,
    pub betas: [f64; 2],
    pub eps: f64,
    pub clip_grad: f64,
}

impl SftOptimConfig {
    /// Returns the settings that reinforcement learning has too: all but `clip_grad`.
    pub fn optim(&self) -> OptimConfig {
        OptimConfig {
            optimizer: self.optimizer.clone(),
            override_optimizer_config: self.override_optimizer_config.clone(),
            lr: self.lr,
            lr_warmup_steps: self.lr_warmup_steps,
            lr_warmup_steps_ratio: self.lr_warmup_steps_ratio,
            min_lr: self.min_lr,
            min_lr_ratio: self.min_lr_ratio,
            lr_warmup_init: self.lr_warmup_init,
            num_cycles: self.num_cycles,
            power: self.power,
            timescale: self.timescale,
            stable_ratio: self.stable_ratio,
            lr_wsd_decay_steps: self.lr_wsd_decay_steps,
            lr_wsd_decay_style: self.lr_wsd_decay_style.clone(),
            zero_indexed_step: self.zero_indexed_step,
            lr_scheduler_type: self.lr_scheduler_type.clone(),
            total_training_steps: self.total_training_steps,
            weight_decay: self.weight_decay,
            betas: self.betas,
            eps: self.eps,
        }
    }
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
