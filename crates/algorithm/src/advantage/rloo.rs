//! RLOO: each response is compared with the mean of the other responses to its prompt.

use super::{AdvantageInput, AdvantageOutput, Estimator};
use burnish_registry::Need;

pub(super) const ESTIMATOR: Estimator = Estimator {
    name: "rloo",
    aliases: &["rloo_vectorized"],
    doc: "REINFORCE with a leave-one-out baseline: the mean score of the other responses to the same prompt.\n\
          Formula: A_i = s_i − (Σ_{j≠i} s_j)/(n−1) = n/(n−1)·(s_i − mean), on every trained token; alone in its group: A_i = s_i.\n\
          Paper: Ahmadian et al. 2024, Back to Basics, arXiv:2402.14740.\n\
          verl: compute_rloo_outcome_advantage, compute_rloo_vectorized_outcome_advantage.\n\
          TRL: RLOOTrainer, whose advantage this is with the KL inside the reward: algorithm.use_kl_in_reward=true, kl_penalty=k1.\n\
          Deviation: alone in its group, a response has advantage 0 in verl's rloo_vectorized and in TRL; here both names give s_i, \
          as verl's rloo.\n\
          When: the first choice for any score, at 2 or more responses to a prompt; unbiased, and without a scale to tune.",
    needs: &[Need::Group],
    reads: &[],
    refuses: &[],
    run,
};

fn run(input: &AdvantageInput) -> AdvantageOutput {
    input.spread(&input.by_group(&input.scores(), |group| if group.len() == 1 { group.to_vec() } else { leave_one_out(group) }))
}

/// Returns each score less the mean of the others. There must be at least two scores.
pub(crate) fn leave_one_out(scores: &[f64]) -> Vec<f64> {
    let total: f64 = scores.iter().sum();
    scores.iter().map(|s| s - (total - s) / (scores.len() - 1) as f64).collect()
}
