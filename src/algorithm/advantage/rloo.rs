//! RLOO: each response is compared with the mean of the other responses to its prompt.

use super::{AdvantageInput, AdvantageOutput, Estimator, Need};

pub const ESTIMATOR: Estimator = Estimator {
    name: "rloo",
    aliases: &[],
    doc: "REINFORCE with a leave-one-out baseline: the mean score of the other responses to the same prompt.\n\
          Formula: A_i = s_i − (Σ_{j≠i} s_j)/(n−1) = n/(n−1)·(s_i − mean), on every trained token; alone in its group: A_i = s_i.\n\
          Paper: Ahmadian et al. 2024, Back to Basics, arXiv:2402.14740.\n\
          verl: compute_rloo_outcome_advantage.",
    needs: &[Need::Group],
    run,
};

fn run(input: &AdvantageInput) -> AdvantageOutput {
    let scores = input.scores();
    let mut advantages = scores.clone();
    for group in input.groups().iter().filter(|group| group.len() > 1) {
        let total: f64 = group.iter().map(|&i| scores[i]).sum();
        for &i in group {
            advantages[i] = scores[i] - (total - scores[i]) / (group.len() - 1) as f64;
        }
    }
    input.spread(&advantages)
}
