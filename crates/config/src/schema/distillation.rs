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
    pub teacher_model_kind: Option<TeacherModelKind>,
    pub teacher_update_rate: f64,
    pub teacher_sync_steps: u64,
    pub privileged_context_key: Option<String>,
    pub teacher_prompt_template: String,
    pub teacher_context: TeacherContext,
    pub sdpo: SdpoConfig,
}

/// The teacher's prompts made of successful responses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SdpoConfig {
    pub enable: bool,
    pub success_reward_threshold: f64,
    pub dont_reprompt_on_self_success: bool,
    pub use_successful_as_teacher: bool,
    pub include_environment_feedback: bool,
    pub environment_feedback_only_without_solution: bool,
    pub remove_thinking_from_demonstration: bool,
    pub max_reprompt_len: usize,
    pub reprompt_template: String,
    pub solution_template: String,
    pub feedback_template: String,
}

/// The loss.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DistillationLossConfig {
    pub loss_mode: DistillationMode,
    pub topk: usize,
    pub beta: f64,
    pub loss_top_k: usize,
    pub loss_support: LossSupport,
    pub loss_add_tail: bool,
    pub distillation_is_clip: Option<f64>,
    pub num_loss_tokens_to_skip: usize,
    pub iw_opd_gamma: f64,
    pub iw_opd_epsilon: f64,
    pub use_task_rewards: bool,
    pub distillation_loss_coef: f64,
    pub opd_kl_coef: Option<f64>,
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
        RefKl = "ref_kl",
        SampledToken = "sampled_token",
        IwOpd = "iw_opd",
    }
}

choices! {
    /// A teacher that is made of the policy.
    pub enum TeacherModelKind {
        Base = "base",
        Live = "live",
        Ema = "ema",
    }
}

choices! {
    /// The message in which the teacher reads its context.
    pub enum TeacherContext {
        User = "user",
        System = "system",
    }
}

choices! {
    /// The model whose most probable tokens are compared.
    pub enum LossSupport {
        Auto = "auto",
        Teacher = "teacher",
        Student = "student",
        Both = "both",
    }
}

impl DistillationMode {
    /// True if the measure uses only the probability of the sampled token.
    pub fn is_sampled(self) -> bool {
        !matches!(self, Self::ForwardKlTopk | Self::ReverseKl | Self::ForwardKl | Self::Jsd)
    }

    /// True if the loss is a policy gradient.
    pub fn is_policy_gradient(self) -> bool {
        matches!(self, Self::RefKl | Self::SampledToken | Self::IwOpd)
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

    /// Returns the factor of the teacher's term in the advantages; `None` if the teacher's is a loss.
    pub fn in_advantages(&self) -> Option<f64> {
        self.distillation_loss.opd_kl_coef.filter(|_| self.enabled)
    }

    /// True if the loss compares the teacher's head with the policy's head over the whole vocabulary.
    pub fn compares_heads(&self) -> bool {
        let mode = self.distillation_loss.loss_mode;
        self.enabled && !mode.is_sampled() && mode != DistillationMode::ForwardKlTopk && self.distillation_loss.loss_top_k == 0
    }

    /// Returns the kind of teacher that is made of the policy, if distillation is enabled.
    pub fn kind(&self) -> Option<TeacherModelKind> {
        self.teacher_model_kind.filter(|_| self.enabled)
    }

    /// Returns the column of what only the teacher is shown, if distillation is enabled.
    pub fn context_key(&self) -> Option<&str> {
        self.privileged_context_key.as_deref().filter(|_| self.enabled)
    }

    /// Returns the settings of prompts made of successful responses, if the teacher reads such prompts.
    pub fn sdpo(&self) -> Option<&SdpoConfig> {
        Some(&self.sdpo).filter(|sdpo| self.enabled && sdpo.enable)
    }

    /// Returns the number of tokens at the start of each response that the teacher's loss leaves out.
    pub fn skipped_tokens(&self) -> usize {
        if self.enabled { self.distillation_loss.num_loss_tokens_to_skip } else { 0 }
    }

    /// Returns the teacher, if distillation is enabled.
    pub fn teacher(&self) -> Option<&Location> {
        self.teacher_models.teacher_model.model_path.as_ref().filter(|_| self.enabled && self.teacher_model_kind.is_none())
    }
}
