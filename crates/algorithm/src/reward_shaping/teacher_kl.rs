//! The distance of the policy from a teacher, as a term of the advantages.

use super::shaping::Shaping;

pub(crate) const SHAPING: Shaping = Shaping {
    name: "opd_kl_coef",
    doc: "The distance from a teacher is subtracted from the advantage of each token, after the estimator.\n\
          Formula: A_t ← A_t − opd_kl_coef·(log π_old − log π_teacher).\n\
          Source: slime 0.3.1, backends/megatron_utils/loss.py.\n\
          slime: apply_opd_kl_to_advantages.\n\
          When: a teacher should guide single tokens while scores judge whole responses, in one clipped loss.",
};

/// Subtracts the term from the advantages of trained tokens, and returns `opd_reverse_kl`, the mean of log π_old − log π_teacher over
/// these tokens.
pub fn subtract_teacher_kl(
    mask: &[f32],
    old_log_prob: &[f32],
    teacher_log_prob: &[f32],
    coef: f64,
    advantages: &mut [f32],
) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for t in (0..mask.len()).filter(|&t| mask[t] != 0.0) {
        let distance = f64::from(old_log_prob[t]) - f64::from(teacher_log_prob[t]);
        advantages[t] = (f64::from(advantages[t]) - coef * distance) as f32;
        (sum, count) = (sum + distance, count + 1.0);
    }
    if count > 0.0 { sum / count } else { 0.0 }
}
