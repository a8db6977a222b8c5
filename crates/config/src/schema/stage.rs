//! The common settings of all stages other than reinforcement learning: rows, the trained model, its checkpoints and its run.
//! Meaning and defaults: `config/stage/`.

use serde::{Deserialize, Serialize};

use super::actor::CheckpointConfig;
use super::data::OnMalformedRow;
use super::loadable::Schema;
use super::location_setting::{LocationKind, LocationSetting};
use super::location_settings::{many, model, one};
use super::lora::lora_keys;
use super::optim::StageOptimConfig;
use super::trainer::{OnAlarm, OnNonfinite, ResumeKeys, TrainerResumeMode};
use super::types::{Device, Dtype, Frequency, Location, ModelInit, OneOrMany, OpenMapping, choices};
use super::validate_data::template_date;
use super::validate_trainer;
use crate::Report;

/// The configuration of a stage, with the common settings of all stages.
pub trait StageConfig: Schema {
    /// The name of the stage in `run.json` and on the command line.
    const NAME: &'static str;

    /// Returns the common settings of all stages.
    fn stage(&self) -> StageKeys<'_>;

    /// Returns the number formats of the models of a run, with their keys.
    fn dtypes(&self) -> Vec<(&'static str, Dtype)> {
        vec![("model.dtype", self.stage().model.dtype)]
    }
}

/// The common settings of all stages.
#[derive(Clone, Copy)]
pub struct StageKeys<'a> {
    pub data: StageData<'a>,
    pub model: &'a StageModelConfig,
    pub optim: &'a StageOptimConfig,
    pub checkpoint: &'a CheckpointConfig,
    pub trainer: &'a StageTrainerConfig,
}

choices! {
    /// The treatment of an example that is too long.
    pub enum StageTruncation {
        Error = "error",
        /// The example is dropped.
        Filter = "filter",
        /// Its beginning is cut.
        Left = "left",
        /// Its end is cut.
        Right = "right",
    }
}

/// The common `data` settings of all stages.
#[derive(Clone, Copy)]
pub struct StageData<'a> {
    pub train_batch_size: usize,
    pub micro_batch_size_per_gpu: usize,
    pub use_dynamic_bsz: bool,
    pub max_token_len_per_gpu: usize,
    pub train_files: &'a OneOrMany<Location>,
    pub val_files: Option<&'a OneOrMany<Location>>,
    pub max_length: usize,
    pub truncation: StageTruncation,
    pub on_malformed_row: OnMalformedRow,
    pub train_weights: Option<&'a [f64]>,
    pub train_max_samples: i64,
    pub val_max_samples: i64,
    pub shuffle: bool,
    pub seed: Option<u64>,
    pub tools_key: &'a str,
    pub enable_thinking_key: &'a str,
    pub apply_chat_template_kwargs: &'a OpenMapping,
    pub chat_template_date: Option<&'a str>,
}

/// Writes the `data` section of a stage: the common settings, then its own settings.
macro_rules! stage_data {
    ($(#[$about:meta])* $name:ident { $($field:ident: $type:ty,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            pub train_batch_size: usize,
            pub micro_batch_size_per_gpu: usize,
            pub use_dynamic_bsz: bool,
            pub max_token_len_per_gpu: usize,
            pub train_files: $crate::schema::OneOrMany<$crate::schema::Location>,
            #[serde(deserialize_with = "crate::schema::types::files_or_none")]
            pub val_files: Option<$crate::schema::OneOrMany<$crate::schema::Location>>,
            pub max_length: usize,
            pub truncation: $crate::schema::StageTruncation,
            pub on_malformed_row: $crate::schema::OnMalformedRow,
            pub train_weights: Option<Vec<f64>>,
            pub train_max_samples: i64,
            pub val_max_samples: i64,
            pub shuffle: bool,
            pub seed: Option<u64>,
            pub tools_key: String,
            pub enable_thinking_key: String,
            pub apply_chat_template_kwargs: $crate::schema::OpenMapping,
            pub chat_template_date: Option<String>,
            $(pub $field: $type,)*
        }

        impl $name {
            /// Returns the common settings of all stages.
            pub fn stage(&self) -> $crate::schema::StageData<'_> {
                $crate::schema::StageData {
                    train_batch_size: self.train_batch_size,
                    micro_batch_size_per_gpu: self.micro_batch_size_per_gpu,
                    use_dynamic_bsz: self.use_dynamic_bsz,
                    max_token_len_per_gpu: self.max_token_len_per_gpu,
                    train_files: &self.train_files,
                    val_files: self.val_files.as_ref(),
                    max_length: self.max_length,
                    truncation: self.truncation,
                    on_malformed_row: self.on_malformed_row,
                    train_weights: self.train_weights.as_deref(),
                    train_max_samples: self.train_max_samples,
                    val_max_samples: self.val_max_samples,
                    shuffle: self.shuffle,
                    seed: self.seed,
                    tools_key: &self.tools_key,
                    enable_thinking_key: &self.enable_thinking_key,
                    apply_chat_template_kwargs: &self.apply_chat_template_kwargs,
                    chat_template_date: self.chat_template_date.as_deref(),
                }
            }
        }
    };
}
pub(super) use stage_data;

/// The model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageModelConfig {
    pub path: Location,
    pub override_config: OpenMapping,
    pub init: ModelInit,
    pub dtype: Dtype,
    pub enable_gradient_checkpointing: bool,
    pub tokenizer_path: Option<Location>,
    pub custom_chat_template: Option<String>,
    pub lora_rank: usize,
    pub lora_alpha: f64,
    pub target_modules: OneOrMany<String>,
    pub exclude_modules: Option<OneOrMany<String>>,
    pub lora_adapter_path: Option<Location>,
    pub load_in_4bit: bool,
    pub bnb_4bit_use_double_quant: bool,
}

lora_keys!(StageModelConfig, "model");

impl StageModelConfig {
    /// Returns the folder of the tokenizer.
    pub fn tokenizer_folder(&self) -> &Location {
        self.tokenizer_path.as_ref().unwrap_or(&self.path)
    }
}

/// Length, name, logs, checkpoints and device of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StageTrainerConfig {
    pub total_epochs: usize,
    pub total_training_steps: Option<usize>,
    pub project_name: String,
    pub experiment_name: String,
    pub logger: OneOrMany<String>,
    pub default_local_dir: Location,
    pub save_freq: Option<Frequency>,
    pub save_best: bool,
    pub test_freq: Frequency,
    pub eval_delay: u64,
    pub seed: u64,
    pub device: Device,
    pub price_per_hour: Option<f64>,
    pub gradient_slices: Option<usize>,
    pub balance_batch: bool,
    pub nccl_timeout: u64,
    pub resume_mode: TrainerResumeMode,
    pub resume_from_path: Option<Location>,
    pub max_ckpt_to_keep: Option<usize>,
    pub metric_for_best_model: Option<String>,
    pub greater_is_better: Option<bool>,
    pub early_stopping_patience: Option<usize>,
    pub early_stopping_threshold: f64,
    pub on_nonfinite: OnNonfinite,
    pub on_alarm: OnAlarm,
}

impl StageTrainerConfig {
    pub fn resume(&self) -> ResumeKeys {
        let (dir, from) = (self.default_local_dir.as_path().to_owned(), self.resume_from_path.clone());
        ResumeKeys { dir, mode: self.resume_mode, from }
    }
}

/// Returns the common settings that name a model or data.
pub(super) fn locations<'a>(
    settings: &'a mut StageModelConfig,
    train_files: &'a mut OneOrMany<Location>,
    val_files: &'a mut Option<OneOrMany<Location>>,
) -> Vec<LocationSetting<'a>> {
    let locations = one("model.path", model(settings.init), [&mut settings.path]);
    let locations = locations.chain(one("model.tokenizer_path", LocationKind::Tokenizer, &mut settings.tokenizer_path));
    let locations = locations.chain(one("model.lora_adapter_path", LocationKind::Adapter, &mut settings.lora_adapter_path));
    let locations = locations.chain(many("data.train_files", LocationKind::TrainingData, [train_files]));
    locations.chain(many("data.val_files", LocationKind::ValidationData, val_files)).collect()
}

/// Checks the rules for the common settings that the types cannot express.
pub(super) fn validate(keys: StageKeys, report: &mut Report) {
    let StageKeys { data, model, optim, trainer, checkpoint: _ } = keys;
    if let Some(weights) = data.train_weights {
        let (count, files) = (weights.len(), data.train_files.len());
        if count != files {
            let message = format!("`data.train_weights` has {count} numbers, but `data.train_files` has {files} files");
            report.wrong("data.train_weights", message, "write one number for each of data.train_files");
        }
        if weights.iter().any(|weight| !weight.is_finite() || *weight <= 0.0) {
            report.wrong(
                "data.train_weights",
                "`data.train_weights` must be finite numbers above 0",
                "to leave out a file, remove it from data.train_files",
            );
        }
    }
    validate_trainer::resume(&trainer.resume(), report);
    if let (Some(_), None) = (&trainer.metric_for_best_model, data.val_files) {
        let message = "`trainer.metric_for_best_model` is a metric of validation, but `data.val_files` is null";
        report.wrong("trainer.metric_for_best_model", message, "write data.val_files=FILE");
    }
    if let (Some(_), None) = (trainer.early_stopping_patience, &trainer.metric_for_best_model) {
        let message = "`trainer.early_stopping_patience` needs `trainer.metric_for_best_model`, the metric that must improve";
        report.wrong("trainer.early_stopping_patience", message, "write trainer.metric_for_best_model=val/loss");
    }
    let kept = trainer.save_freq.is_some_and(|freq| trainer.save_best || freq.is_due_whenever(trainer.test_freq));
    if trainer.early_stopping_patience.is_some() && !kept {
        let message = "`trainer.early_stopping_patience` ends the run after the best step, but `trainer.save_best` is false and \
                       `trainer.save_freq` may not save that step";
        report.wrong("trainer.save_best", message, "write trainer.save_best=true");
    }
    template_date(data.chat_template_date, report);
    optim.optim().validate("optim", report);
    model.lora().validate(model.init, report);
    let (budget, longest) = (data.max_token_len_per_gpu, data.max_length);
    if data.use_dynamic_bsz && budget < longest {
        let message = format!("`data.max_token_len_per_gpu` is {budget}, but one example may have {longest} tokens");
        report.wrong("data.max_token_len_per_gpu", message, format!("write data.max_token_len_per_gpu={longest} or more"));
    }
}
