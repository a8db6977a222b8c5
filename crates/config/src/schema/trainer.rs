//! `trainer.*`: the run. Meaning and defaults: `config/trainer/default.yaml`.

use std::path::PathBuf;

use super::types::{Device, Frequency, Location, OneOrMany, choices};
use serde::{Deserialize, Serialize};

/// Length, name, logs, checkpoints and device of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainerConfig {
    pub total_epochs: usize,
    pub total_training_steps: Option<usize>,
    pub project_name: String,
    pub experiment_name: String,
    pub logger: OneOrMany<String>,
    pub wandb_proxy: Option<String>,
    pub metric_names: MetricNames,
    pub log_val_generations: usize,
    pub log_completions: usize,
    pub num_sample_generations: usize,
    pub device: Device,
    pub price_per_hour: Option<f64>,
    pub gradient_slices: Option<usize>,
    pub balance_batch: bool,
    pub seed: u64,
    pub save_freq: Option<Frequency>,
    pub save_best: bool,
    pub val_before_train: bool,
    pub val_only: bool,
    pub test_freq: Frequency,
    pub eval_delay: u64,
    pub critic_warmup: usize,
    pub default_local_dir: Location,
    pub resume_mode: TrainerResumeMode,
    pub resume_from_path: Option<Location>,
    pub max_actor_ckpt_to_keep: Option<usize>,
    pub(crate) max_critic_ckpt_to_keep: Option<usize>,
    pub metric_for_best_model: Option<String>,
    pub greater_is_better: bool,
    pub on_nonfinite: OnNonfinite,
    pub on_alarm: OnAlarm,
    pub rollout_data_dir: Option<Location>,
    pub validation_data_dir: Option<Location>,
}

choices! {
    /// The naming of the metrics.
    pub enum MetricNames {
        Verl = "verl",
        Trl = "trl",
    }
}

choices! {
    /// The treatment of NaN and infinite values.
    pub enum OnNonfinite {
        /// The run ends.
        Error = "error",
        /// The run skips scores, responses and updates that are not finite.
        Skip = "skip",
    }
}

choices! {
    /// The consequence of an alarm.
    pub enum OnAlarm {
        /// The run continues.
        Warn = "warn",
        /// The run saves a checkpoint and continues.
        Save = "save",
        /// The run saves a checkpoint and ends.
        Stop = "stop",
    }
}

/// The settings for resuming of every kind of configuration that trains.
#[derive(Debug, Clone)]
pub struct ResumeKeys {
    /// `trainer.default_local_dir`.
    pub dir: PathBuf,
    pub mode: TrainerResumeMode,
    /// `trainer.resume_from_path`.
    pub from: Option<Location>,
}

impl TrainerConfig {
    pub fn resume(&self) -> ResumeKeys {
        let (dir, from) = (self.default_local_dir.as_path().to_owned(), self.resume_from_path.clone());
        ResumeKeys { dir, mode: self.resume_mode, from }
    }
}

choices! {
    /// The checkpoint from which a run starts.
    pub enum TrainerResumeMode {
        /// The newest checkpoint, or a fresh start without a checkpoint.
        Auto = "auto",
        Disable = "disable",
        /// The checkpoint at `resume_from_path`.
        ResumePath = "resume_path",
    }
}
