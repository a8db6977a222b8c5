//! `trainer.*`: the run. Meaning and defaults: `config/trainer/default.yaml`.

use super::types::{Device, Location, OneOrMany, choices};
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
    pub log_val_generations: usize,
    pub nnodes: usize,
    pub n_gpus_per_node: usize,
    pub device: Device,
    pub seed: u64,
    pub save_freq: i64,
    pub val_before_train: bool,
    pub val_only: bool,
    pub test_freq: i64,
    pub critic_warmup: usize,
    pub default_local_dir: Location,
    pub default_hdfs_dir: Option<Location>,
    pub resume_mode: ResumeMode,
    pub resume_from_path: Option<Location>,
    pub max_actor_ckpt_to_keep: Option<usize>,
    pub remove_previous_ckpt_in_save: bool,
    pub del_local_ckpt_after_load: bool,
    pub rollout_data_dir: Option<Location>,
    pub validation_data_dir: Option<Location>,
    pub ray_wait_register_center_timeout: u64,
}

impl TrainerConfig {
    /// How many checkpoints are kept, the newest; `None` keeps all. `remove_previous_ckpt_in_save` is an older spelling of 1.
    pub fn checkpoints_to_keep(&self) -> Option<usize> {
        self.max_actor_ckpt_to_keep.or(self.remove_previous_ckpt_in_save.then_some(1))
    }
}

choices! {
    /// Where a run starts.
    pub enum ResumeMode {
        /// From the newest checkpoint, or afresh where there is none.
        Auto = "auto",
        Disable = "disable",
        /// From `resume_from_path`.
        ResumePath = "resume_path",
    }
}
