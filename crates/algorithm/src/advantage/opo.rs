//! OPO: the baseline of least variance, under the approximation that a response's gradient grows with its length.

use super::{AdvantageInput, AdvantageOutput, Estimator};
use crate::sequences;
use burnish_registry::Need;

pub(super) const ESTIMATOR: Estimator = Estimator {
    name: "opo",
    aliases: &[],
    doc: "REINFORCE with the length-weighted mean score of the group as baseline.\n\
          Formula: A_i = s_i − (Σ_j l_j·s_j)/(Σ_j l_j), l the number of trained tokens; alone in its group: A_i = s_i.\n\
          Paper: Hao et al. 2025, On-Policy RL with Optimal Reward Baseline, arXiv:2505.23585.\n\
          verl: compute_opo_outcome_advantage.\n\
          Deviation: a group without any trained token has baseline 0 (verl divides 0 by 0).\n\
          When: exactly on-policy training (one update per batch) with responses of very different length.",
    needs: &[Need::Group],
    reads: &[],
    refuses: &[],
    run,
};

fn run(input: &AdvantageInput) -> AdvantageOutput {
    let lengths: Vec<f64> = sequences(input.offsets).map(|tokens| input.trained(tokens).count() as f64).collect();
    let mut advantages = input.scores();
    for group in input.groups().iter().filter(|group| group.len() > 1) {
        let tokens: f64 = group.iter().map(|&i| lengths[i]).sum();
        let weighted: f64 = group.iter().map(|&i| lengths[i] * advantages[i]).sum();
        let baseline = if tokens > 0.0 { weighted / tokens } else { 0.0 };
        group.iter().for_each(|&i| advantages[i] -= baseline);
    }
    input.spread(&advantages)
}
