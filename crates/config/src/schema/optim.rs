//! `*.optim`: the optimizer and its schedule. Meaning and defaults: `config/optim/adamw.yaml`.

use serde::{Deserialize, Serialize};

use super::types::OpenMapping;
use crate::Report;

/// Writes the two structs with these settings.
macro_rules! optim_configs {
    ($($field:ident: $type:ty,)*) => {
        /// The optimizer and its learning-rate schedule.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct OptimConfig {
            $(pub $field: $type,)*
        }

        /// [`OptimConfig`] and the maximum norm of the gradient, which the actor has outside of `optim`.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct StageOptimConfig {
            $(pub $field: $type,)*
            pub clip_grad: f64,
        }

        impl StageOptimConfig {
            /// Returns the settings without `clip_grad`, as in reinforcement learning.
            pub fn optim(&self) -> OptimConfig {
                let Self { $($field,)* clip_grad: _ } = self.clone();
                OptimConfig { $($field,)* }
            }
        }
    };
}

optim_configs! {
    optimizer: String,
    override_optimizer_config: OpenMapping,
    lr: f64,
    lr_warmup_steps: i64,
    lr_warmup_steps_ratio: f64,
    min_lr: f64,
    min_lr_ratio: f64,
    lr_warmup_init: f64,
    num_cycles: f64,
    power: f64,
    timescale: Option<usize>,
    stable_ratio: f64,
    lr_wsd_decay_steps: Option<usize>,
    lr_wsd_decay_style: String,
    zero_indexed_step: bool,
    lr_scheduler_type: String,
    total_training_steps: i64,
    weight_decay: f64,
    no_decay_name_list: Vec<String>,
    betas: [f64; 2],
    eps: f64,
}

impl OptimConfig {
    /// Returns the length of the schedule in steps, for a run of `run_steps`.
    pub fn schedule_steps(&self, run_steps: usize) -> usize {
        usize::try_from(self.total_training_steps).unwrap_or(run_steps)
    }

    /// Checks the rates against each other; `section`: the key of these settings.
    pub(super) fn validate(&self, section: &str, report: &mut Report) {
        for (name, rate) in [("min_lr", self.min_lr), ("lr_warmup_init", self.lr_warmup_init)] {
            if rate > self.lr {
                let (key, lr) = (format!("{section}.{name}"), self.lr);
                let message = format!("`{key}` is {rate}, but must not be above `{section}.lr`, which is {lr}");
                report.wrong(&key, message, format!("write {key}={lr} or less"));
            }
        }
        if self.lr_scheduler_type == "cosine_with_restarts" && self.num_cycles.fract() != 0.0 {
            let key = format!("{section}.num_cycles");
            let message =
                format!("`{key}` is {}, but must be a whole number: cosine_with_restarts decays so often", self.num_cycles);
            report.wrong(&key, message, format!("write a whole number, such as {key}=1"));
        }
    }
}
