//! Distillation on given texts. Meaning and defaults: `config/distill_trainer.yaml`.

use serde::{Deserialize, Serialize};

use super::actor::CheckpointConfig;
use super::distillation::LossSupport;
use super::loadable::Schema;
use super::location_setting::{LocationKind, LocationSetting};
use super::location_settings::one;
use super::optim::StageOptimConfig;
use super::sft::SftDataConfig;
use super::stage::{self, StageConfig, StageKeys, StageModelConfig, StageTrainerConfig};
use super::types::{Dtype, Location, choices};
use crate::{Kind, Report};

/// The configuration of `trainer distill`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DistillConfig {
    pub data: SftDataConfig,
    pub model: StageModelConfig,
    pub teacher: TeacherConfig,
    pub algorithm: DistillAlgorithmConfig,
    pub optim: StageOptimConfig,
    pub checkpoint: CheckpointConfig,
    pub trainer: StageTrainerConfig,
}

/// The teacher model, or its stored log-probabilities.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TeacherConfig {
    pub path: Option<Location>,
    pub dtype: Dtype,
    pub top_k: Option<usize>,
    pub logits_file: Option<Location>,
    pub logits_dtype: LogitsDtype,
}

choices! {
    /// The number format of stored log-probabilities.
    pub enum LogitsDtype {
        Float32 = "float32",
        Float16 = "float16",
    }
}

/// The loss.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DistillAlgorithmConfig {
    pub loss_type: DistillDivergence,
    pub beta: f64,
    pub loss_top_k: usize,
    pub loss_add_tail: bool,
    pub temperature: f64,
    pub kd_coef: f64,
    pub log_prob_min_clamp: Option<f64>,
    pub use_extended_uld: bool,
    pub uld_token_merge_strategy: UldTokenMerge,
    pub uld_use_hybrid_loss: bool,
    pub uld_hybrid_matched_weight: Option<f64>,
    pub uld_hybrid_unmatched_weight: Option<f64>,
    pub uld_crossentropy_weight: f64,
    pub uld_distillation_weight: f64,
    pub uld_student_temperature: f64,
    pub uld_teacher_temperature: f64,
    pub uld_skip_student_eos: bool,
    pub uld_skip_teacher_eos: bool,
}

choices! {
    /// A divergence between a teacher T and the student π.
    pub enum DistillDivergence {
        ForwardKl = "forward_kl",
        ReverseKl = "reverse_kl",
        Jsd = "jsd",
        CrossEntropy = "cross_entropy",
        Uld = "uld",
    }
}

choices! {
    /// The distribution of several tokens that are compared as one.
    pub enum UldTokenMerge {
        Bayesian = "bayesian",
        Observed = "observed",
    }
}

impl StageConfig for DistillConfig {
    const NAME: &'static str = "distill";

    fn stage(&self) -> StageKeys<'_> {
        let Self { data, model, optim, checkpoint, trainer, teacher: _, algorithm: _ } = self;
        StageKeys { data: data.stage(), model, optim, checkpoint, trainer }
    }

    fn dtypes(&self) -> Vec<(&'static str, Dtype)> {
        let runs = !self.teacher.is_stored() && !self.algorithm.is_without_teacher();
        let teacher = runs.then_some(("teacher.dtype", self.teacher.dtype));
        [("model.dtype", self.model.dtype)].into_iter().chain(teacher).collect()
    }
}

impl TeacherConfig {
    /// True if the teacher's top-k tokens are read from an existing file.
    pub fn is_stored(&self) -> bool {
        self.logits_file.as_ref().is_some_and(|file| file.as_path().exists())
    }
}

impl DistillAlgorithmConfig {
    /// Returns β and the models whose `loss_top_k` most probable tokens are compared; `None` for the whole vocabulary.
    pub fn support(&self) -> Option<(f64, LossSupport)> {
        let beta = match self.loss_type {
            DistillDivergence::ForwardKl | DistillDivergence::CrossEntropy | DistillDivergence::Uld => 0.0,
            DistillDivergence::ReverseKl => 1.0,
            DistillDivergence::Jsd => self.beta,
        };
        let of = match beta {
            0.0 => LossSupport::Teacher,
            1.0 => LossSupport::Student,
            _ => LossSupport::Both,
        };
        (self.loss_top_k > 0).then_some((beta, of))
    }

    /// True if the loss is only the likelihood, so that no teacher is needed.
    pub fn is_without_teacher(&self) -> bool {
        if self.is_uld() { self.uld_distillation_weight == 0.0 } else { self.kd_coef == 0.0 }
    }

    /// True if the teacher reads its own tokens.
    pub fn is_uld(&self) -> bool {
        self.loss_type == DistillDivergence::Uld
    }
}

impl Schema for DistillConfig {
    const KIND: Kind = Kind::Distill;

    fn locations(&mut self) -> Vec<LocationSetting<'_>> {
        let stored = self.teacher.is_stored();
        let mut locations = stage::locations(&mut self.model, &mut self.data.train_files, &mut self.data.val_files);
        if !self.algorithm.is_without_teacher() {
            locations.extend(one("teacher.path", LocationKind::Model { weights: !stored }, &mut self.teacher.path));
        }
        locations
    }

    fn validate(&self, report: &mut Report) {
        stage::validate(self.stage(), report);
        let (teacher, algorithm) = (&self.teacher, &self.algorithm);
        if algorithm.is_uld() {
            uld(self, report);
        }
        if algorithm.is_without_teacher() {
            return;
        }
        if teacher.path.is_none() && teacher.logits_file.is_none() {
            let help = "write teacher.path=FOLDER, or teacher.logits_file=FILE with the file of a teacher";
            report.wrong("teacher.path", "neither `teacher.path` nor `teacher.logits_file` is set, so there is no teacher", help);
        }
        if teacher.path.is_none() && teacher.logits_file.is_some() && !teacher.is_stored() {
            let message = "`teacher.logits_file` does not exist, and without `teacher.path` no teacher can write it";
            report.wrong("teacher.logits_file", message, "write teacher.path=FOLDER too");
        }
        if teacher.logits_file.is_some() && teacher.top_k.is_none() && !teacher.is_stored() {
            let message = "a new `teacher.logits_file` needs `teacher.top_k`: a whole vocabulary per token would be too large";
            report.wrong("teacher.top_k", message, "write teacher.top_k=32");
        }
        let sparse = teacher.top_k.is_some() || teacher.logits_file.is_some();
        if algorithm.loss_top_k > 0 && sparse {
            let message = "`algorithm.loss_top_k` compares tokens of a teacher that runs in every step";
            report.wrong("algorithm.loss_top_k", message, "write teacher.top_k=null and teacher.logits_file=null");
        }
        if algorithm.loss_top_k > 0 && algorithm.loss_type == DistillDivergence::CrossEntropy {
            let message = "`algorithm.loss_top_k` has no cross_entropy; its gradient is that of forward_kl";
            report.wrong("algorithm.loss_type", message, "write algorithm.loss_type=forward_kl");
        }
        if sparse && !algorithm.is_uld() && algorithm.loss_type != DistillDivergence::ForwardKl {
            let message = "with the teacher's top-k tokens, `algorithm.loss_type` must be forward_kl, KL(T ‖ π)";
            report.wrong(
                "algorithm.loss_type",
                message,
                "write algorithm.loss_type=forward_kl, or remove teacher.top_k and teacher.logits_file",
            );
        }
    }
}

/// Checks the settings of a teacher with other tokens.
fn uld(config: &DistillConfig, report: &mut Report) {
    let (teacher, algorithm) = (&config.teacher, &config.algorithm);
    let set = [
        ("teacher.top_k", teacher.top_k.is_some(), "null"),
        ("teacher.logits_file", teacher.logits_file.is_some(), "null"),
        ("algorithm.loss_top_k", algorithm.loss_top_k > 0, "0"),
    ];
    for (key, _, off) in set.into_iter().filter(|(_, set, _)| *set) {
        let message = format!("`algorithm.loss_type=uld` compares whole vocabularies, and `{key}` some tokens of one");
        report.wrong(key, message, format!("write {key}={off}"));
    }
    if config.data.packing.is_some() {
        let message = "`algorithm.loss_type=uld` reads each row in the tokens of two models, and they cannot be packed alike";
        report.wrong("data.packing", message, "write data.packing=null");
    }
    if algorithm.uld_hybrid_matched_weight.is_some() != algorithm.uld_hybrid_unmatched_weight.is_some() {
        let message = "`uld_hybrid_matched_weight` and `uld_hybrid_unmatched_weight` are set together";
        report.wrong("algorithm.uld_hybrid_matched_weight", message, "write both, or neither for weights by the vocabularies");
    }
    if algorithm.uld_distillation_weight == 0.0 && algorithm.uld_crossentropy_weight == 0.0 {
        let message = "`uld_distillation_weight` and `uld_crossentropy_weight` are both 0, so nothing would be learnt";
        report.wrong("algorithm.uld_distillation_weight", message, "write algorithm.uld_distillation_weight=1");
    }
}
