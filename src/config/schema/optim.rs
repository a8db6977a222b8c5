//! `*.optim`: AdamW and its schedule. Meaning and defaults: `config/optim/adamw.yaml`.

use serde::{Deserialize, Serialize};

/// AdamW and its learning-rate schedule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptimConfig {
    pub lr: f64,
    pub lr_warmup_steps: i64,
    pub lr_warmup_steps_ratio: f64,
    pub min_lr_ratio: f64,
    pub num_cycles: f64,
    pub lr_scheduler_type: String,
    pub total_training_steps: i64,
    pub weight_decay: f64,
    pub betas: [f64; 2],
    pub eps: f64,
}

impl OptimConfig {
    /// Returns the length of the schedule in steps, for a run of `run_steps`.
    pub fn schedule_steps(&self, run_steps: usize) -> usize {
        usize::try_from(self.total_training_steps).unwrap_or(run_steps)
    }

    /// True if the learning rate at some step depends on the length of the run.
    pub fn follows_length(&self) -> bool {
        let warms_up = self.lr_warmup_steps <= 0 && self.lr_warmup_steps_ratio > 0.0;
        self.total_training_steps < 0 && (warms_up || self.lr_scheduler_type != "constant")
    }
}
