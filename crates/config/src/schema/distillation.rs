//! On-policy distillation. Meaning and defaults: `config/distillation/distillation.yaml`.

use serde::{Deserialize, Serialize};

use super::types::{Location, choices};

/// The section `distillation` of verl, for one teacher.
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
    /// The distance measure between policy and teacher.
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
    /// True if the measure uses only the probability of the sampled token.
    pub fn is_sampled(self) -> bool {
        !matches!(self, Self::ForwardKlTopk | Self::ReverseKl | Self::ForwardKl | Self::Jsd)
    }

    /// True if a token may have a negative loss.
    pub fn is_signed(self) -> bool {
        matches!(self, Self::K1 | Self::Kl)
    }
}

/// The teachers; exactly one.
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
    /// True if the teacher's loss is the only loss, so that nothing uses advantages.
    pub(crate) fn stands_alone(&self) -> bool {
        self.enabled && !self.distillation_loss.use_task_rewards
    }

    /// True if the teacher makes a pass over a batch before the update, with the micro-batches of the reference.
    pub fn passes_before(&self) -> bool {
        self.enabled && self.distillation_loss.loss_mode.is_sampled()
    }

    /// True if the loss compares the teacher's head with the policy's head over the whole vocabulary.
    pub fn compares_heads(&self) -> bool {
        let mode = self.distillation_loss.loss_mode;
        self.enabled && !mode.is_sampled() && mode != DistillationMode::ForwardKlTopk
    }

    /// Returns the teacher, if distillation is enabled.
    pub fn teacher(&self) -> Option<&Location> {
        self.teacher_models.teacher_model.model_path.as_ref().filter(|_| self.enabled)
    }
}
