//! GRPO for pass@k: only the best response of a group has an advantage, its lead over the second best.

use super::grpo::STD_EPSILON;
use super::stats::{mean, std};
use super::{AdvantageInput, AdvantageOutput, Estimator};
use burnish_registry::Need;

pub(super) const ESTIMATOR: Estimator = Estimator {
    name: "grpo_passk",
    aliases: &[],
    doc: "Pass@k: the best response to a prompt gets its lead over the second best, all others 0.\n\
          Formula: A_best = (s_best − s_second)/(std + 1e-6), std with n−1; norm_adv_by_std_in_grpo=false: not divided.\n\
          Paper: Tang et al. 2025, Optimizing Language Models for Inference Time Objectives, arXiv:2503.19595.\n\
          verl: compute_grpo_passk_outcome_advantage.\n\
          Deviation: verl raises on a group of one; here it has no second best, and advantage 0.\n\
          When: the best of k answers is what counts, and scores are graded: in a group with two best answers nothing is learnt.",
    needs: &[Need::Group],
    reads: &["algorithm.norm_adv_by_std_in_grpo"],
    refuses: &[],
    run,
};

fn run(input: &AdvantageInput) -> AdvantageOutput {
    let by_std = input.options.is_on("norm_adv_by_std_in_grpo");
    input.spread(&input.by_group(&input.scores(), |group| lead(group, by_std)))
}

fn lead(scores: &[f64], by_std: bool) -> Vec<f64> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
    let mut advantages = vec![0.0; scores.len()];
    if let [best, second, ..] = order[..] {
        let scale = if by_std { std(scores, mean(scores)) + STD_EPSILON } else { 1.0 };
        advantages[best] = (scores[best] - scores[second]) / scale;
    }
    advantages
}
