//! GRPO: scores are centred, and by default scaled, within the group of their prompt.

use super::stats::{mean, std};
use super::{AdvantageInput, AdvantageOutput, Estimator};
use burnish_registry::Need;

/// Added to the standard deviation, so that a group of equal scores has advantage 0.
pub(crate) const STD_EPSILON: f64 = 1e-6;

pub(super) const ESTIMATOR: Estimator = Estimator {
    name: "grpo",
    aliases: &["grpo_vectorized"],
    doc: "Group-relative advantage: the score, standardised among the responses to the same prompt.\n\
          Formula: A_i = (s_i − mean)/(std + 1e-6), std with n−1; norm_adv_by_std_in_grpo=false: A_i = s_i − mean; \
          alone in its group: mean 0, std 1.\n\
          Paper: Shao et al. 2024, DeepSeekMath, arXiv:2402.03300; without std: Liu et al. 2025, Dr. GRPO, arXiv:2503.20783.\n\
          verl: compute_grpo_outcome_advantage, compute_grpo_vectorized_outcome_advantage.\n\
          Deviation: norm_adv_by_std_in_grpo takes effect under both names; verl's trainer does not pass it to grpo_vectorized, which \
          always divides. Releases before 0.9 floor the std of grpo_vectorized at 1e-3, here there is no floor.\n\
          When: scores can be checked and there are enough responses to a prompt (4 or more) for a deviation.",
    needs: &[Need::Group],
    reads: &["algorithm.norm_adv_by_std_in_grpo"],
    refuses: &[],
    run,
};

fn run(input: &AdvantageInput) -> AdvantageOutput {
    let by_std = input.options.is_on("norm_adv_by_std_in_grpo");
    input.spread(&input.by_group(&input.scores(), |group| relative(group, by_std)))
}

/// Returns the advantages of the scores of one group.
pub(super) fn relative(scores: &[f64], by_std: bool) -> Vec<f64> {
    let (centre, spread) = match scores.len() {
        1 => (0.0, 1.0),
        _ => (mean(scores), std(scores, mean(scores))),
    };
    let scale = if by_std { spread + STD_EPSILON } else { 1.0 };
    scores.iter().map(|s| (s - centre) / scale).collect()
}
