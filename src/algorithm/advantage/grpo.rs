//! GRPO: scores are centred, and by default scaled, within the group of their prompt.

use super::stats::{mean, std};
use super::{AdvantageInput, AdvantageOutput, Estimator, Need};

/// Added to the standard deviation, so that a group of equal scores has advantage 0.
const STD_EPSILON: f64 = 1e-6;

pub const ESTIMATOR: Estimator = Estimator {
    name: "grpo",
    aliases: &[],
    doc: "Group-relative advantage: the score, standardised among the responses to the same prompt.\n\
          Formula: A_i = (s_i − mean)/(std + 1e-6), std with n−1; norm_adv_by_std_in_grpo=false: A_i = s_i − mean; \
          alone in its group: mean 0, std 1.\n\
          Paper: Shao et al. 2024, DeepSeekMath, arXiv:2402.03300; without std: Liu et al. 2025, Dr. GRPO, arXiv:2503.20783.\n\
          verl: compute_grpo_outcome_advantage.",
    needs: &[Need::Group],
    run,
};

fn run(input: &AdvantageInput) -> AdvantageOutput {
    let scores = input.scores();
    let mut advantages = vec![0.0; scores.len()];
    for group in input.groups() {
        let members: Vec<f64> = group.iter().map(|&i| scores[i]).collect();
        let (centre, spread) = match members.len() {
            1 => (0.0, 1.0),
            _ => (mean(&members), std(&members, mean(&members))),
        };
        let scale = if input.options.norm_adv_by_std_in_grpo { spread + STD_EPSILON } else { 1.0 };
        for i in group {
            advantages[i] = (scores[i] - centre) / scale;
        }
    }
    input.spread(&advantages)
}
