//! The loss with a teacher that has other tokens (TRL's GOLD): the likelihood, and the mean over rows of the mean distance of
//! the groups of tokens of a row.
//!
//! TRL takes the mean over the rows of a micro-batch; here it is that of the whole batch, so that micro-batches change nothing.

use anyhow::Result;

use super::teacher::Teacher;
use super::teacher_tokens::tokenizer;
use crate::job::unused_options::UnusedOption;
use burnish_algorithm::uld::{Hybrid, TokenMerge, UldDistance};
use burnish_config::DistillConfig;
use burnish_config::schema::{DistillAlgorithmConfig, UldTokenMerge};
use burnish_data::Tokenizer;
use burnish_model::CausalLm;

/// The settings of this loss.
pub(super) const KEYS: [&str; 11] = [
    "algorithm.use_extended_uld",
    "algorithm.uld_token_merge_strategy",
    "algorithm.uld_use_hybrid_loss",
    "algorithm.uld_hybrid_matched_weight",
    "algorithm.uld_hybrid_unmatched_weight",
    "algorithm.uld_crossentropy_weight",
    "algorithm.uld_distillation_weight",
    "algorithm.uld_student_temperature",
    "algorithm.uld_teacher_temperature",
    "algorithm.uld_skip_student_eos",
    "algorithm.uld_skip_teacher_eos",
];

/// The loss.
pub(super) struct UldLoss {
    pub distance: UldDistance,
    pub merge: TokenMerge,
    pub likelihood_weight: f64,
    pub distance_weight: f64,
    pub student_temperature: f32,
    pub teacher_temperature: f32,
}

impl UldLoss {
    /// Creates the loss; the hybrid form compares the vocabularies of both tokenizers.
    ///
    /// # Errors
    /// If the teacher's tokenizer cannot be read.
    pub(super) fn new(config: &DistillConfig, own: &Tokenizer, student: &CausalLm, teacher: Option<&Teacher>) -> Result<Self> {
        let algorithm = &config.algorithm;
        let hybrid = match teacher.and_then(Teacher::model).filter(|_| algorithm.uld_use_hybrid_loss) {
            None => None,
            Some(model) => {
                let pairs = own.same_spelling(&tokenizer(config, own)?);
                let weights = algorithm.uld_hybrid_matched_weight.zip(algorithm.uld_hybrid_unmatched_weight);
                let vocabularies = [student.config.vocab_size, model.config.vocab_size];
                Some(Hybrid::new(&pairs, vocabularies, weights.map(|(matched, other)| [matched, other]), algorithm.beta))
            }
        };
        Ok(Self {
            distance: UldDistance::new(hybrid),
            merge: match algorithm.uld_token_merge_strategy {
                UldTokenMerge::Bayesian => TokenMerge::Bayesian,
                UldTokenMerge::Observed => TokenMerge::Observed,
            },
            likelihood_weight: algorithm.uld_crossentropy_weight,
            distance_weight: algorithm.uld_distillation_weight,
            student_temperature: algorithm.uld_student_temperature as f32,
            teacher_temperature: algorithm.uld_teacher_temperature as f32,
        })
    }
}

/// Returns the options of this loss without effect.
pub(super) fn unused_options(config: &DistillConfig) -> Vec<UnusedOption> {
    let (teacher, algorithm) = (&config.teacher, &config.algorithm);
    let off = algorithm.is_without_teacher();
    let (hybrid, extended) = (algorithm.uld_use_hybrid_loss, algorithm.use_extended_uld);
    const OTHER: &str = "algorithm.loss_type=uld has its own settings";
    const HYBRID: &str = "it needs algorithm.uld_use_hybrid_loss=true";
    let rows = [
        (true, "algorithm.kd_coef", OTHER),
        (true, "algorithm.temperature", OTHER),
        (true, "algorithm.log_prob_min_clamp", OTHER),
        (true, "algorithm.loss_add_tail", "it needs algorithm.loss_top_k above 0"),
        (teacher.logits_file.is_none(), "teacher.logits_dtype", "it needs teacher.logits_file"),
        (!hybrid, "algorithm.beta", HYBRID),
        (!hybrid, "algorithm.uld_hybrid_matched_weight", HYBRID),
        (!hybrid, "algorithm.uld_hybrid_unmatched_weight", HYBRID),
        (!extended, "algorithm.uld_token_merge_strategy", "it needs algorithm.use_extended_uld=true"),
        (
            extended && !algorithm.uld_skip_student_eos && algorithm.uld_skip_teacher_eos,
            "algorithm.uld_skip_student_eos",
            "it needs algorithm.uld_skip_teacher_eos=false, since an end is compared with an end",
        ),
        (
            extended && !algorithm.uld_skip_teacher_eos && algorithm.uld_skip_student_eos,
            "algorithm.uld_skip_teacher_eos",
            "it needs algorithm.uld_skip_student_eos=false, since an end is compared with an end",
        ),
    ];
    const WITHOUT: &str = "algorithm.uld_distillation_weight is 0";
    let distance = KEYS.into_iter().filter(|key| !key.ends_with("crossentropy_weight") && !key.ends_with("distillation_weight"));
    let without = distance.chain(["teacher.path", "teacher.dtype"]).map(|key| (off, key, WITHOUT));
    rows.into_iter().chain(without).collect()
}

/// Describes the loss for users.
pub(super) fn describe(algorithm: &DistillAlgorithmConfig) -> String {
    let of = if algorithm.uld_use_hybrid_loss { "hybrid distance" } else { "distance of sorted probabilities" };
    format!("{}·(ULD: {of}) + {}·NLL", algorithm.uld_distillation_weight, algorithm.uld_crossentropy_weight)
}
