//! On-policy distillation. Meaning and defaults: `config/distillation/distillation.yaml`.

use serde::{Deserialize, Serialize};

use super::types::{Location, choices};

/// `distillation`, as verl has it, for one teacher.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DistillationConfig {
    pub enabled: bool,
    pub distillation_loss: DistillationLossConfig,
    pub teacher_models: TeacherModelsConfig,
}

/// The loss.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DistillationLossConfig {
    pub loss_mode: DistillationMode,
    pub topk: usize,
    pub beta: f64,
    pub use_task_rewards: bool,
    pub distillation_loss_coef: f64,
    pub loss_max_clamp: Option<f64>,
    pub log_prob_min_clamp: Option<f64>,
    pub use_policy_gradient: bool,
    pub clip_ratio: f64,
    pub clip_ratio_low: Option<f64>,
    pub clip_ratio_high: Option<f64>,
}

choices! {
    /// The measure of the difference between policy and teacher.
    pub enum DistillationMode {
        K1 = "k1",
        Kl = "kl",
        Abs = "abs",
        K2 = "k2",
        Mse = "mse",
        K3 = "k3",
        LowVarKl = "low_var_kl",
        ForwardKlTopk = "forward_kl_topk",
        ReverseKl = "reverse_kl",
        ForwardKl = "forward_kl",
        Jsd = "jsd",
    }
}

impl DistillationMode {
    /// True if the probability of the sampled token is all that it reads.
    pub fn is_sampled(self) -> bool {
        !matches!(self, Self::ForwardKlTopk | Self::ReverseKl | Self::ForwardKl | Self::Jsd)
    }

    /// True if a token may have a negative loss.
    pub fn is_signed(self) -> bool {
        matches!(self, Self::K1 | Self::Kl)
    }
}

/// The teachers: one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TeacherModelsConfig {
    pub teacher_model: TeacherModelConfig,
}

/// A teacher.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TeacherModelConfig {
    pub model_path: Option<Location>,
}

/// The key of the teacher.
pub const TEACHER: &str = "distillation.teacher_models.teacher_model.model_path";

impl DistillationConfig {
    /// True if the loss of the teacher is the only one, so that nothing reads advantages.
    pub fn stands_alone(&self) -> bool {
        self.enabled && !self.distillation_loss.use_task_rewards
    }

    /// True if the teacher makes a pass over a batch before the update, which is cut as that of the reference.
    pub fn passes_before(&self) -> bool {
        self.enabled && self.distillation_loss.loss_mode.is_sampled()
    }

    /// True if the teacher's head stands beside that of the policy, over the whole vocabulary.
    pub fn compares_heads(&self) -> bool {
        let mode = self.distillation_loss.loss_mode;
        self.enabled && !mode.is_sampled() && mode != DistillationMode::ForwardKlTopk
    }

    /// The teacher of a run that has one.
    pub fn teacher(&self) -> Option<&Location> {
        self.teacher_models.teacher_model.model_path.as_ref().filter(|_| self.enabled)
    }
}
