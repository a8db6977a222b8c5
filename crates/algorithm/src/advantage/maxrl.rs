//! MaxRL: the score relative to the mean of its group.

use super::stats::mean;
use super::{AdvantageInput, AdvantageOutput, Estimator};
use burnish_registry::Need;

pub(super) const ESTIMATOR: Estimator = Estimator {
    name: "maxrl",
    aliases: &["max_rl"],
    doc: "MaxRL: the score less the mean of its group, divided by that mean, so that rarely solved prompts count more.\n\
          Formula: A_i = (s_i − mean)/mean on every trained token; 0 if the mean is 0 or less.\n\
          Paper: Tajwar et al. 2026, Maximum Likelihood Reinforcement Learning, arXiv:2602.02710.\n\
          SkyRL: compute_maxrl_advantage.\n\
          prime-rl: MaxRLAlgorithm.\n\
          Deviation: SkyRL adds 1e-6 to the mean, reverses the sign of a group whose mean is negative, and keeps the score of a \
          response alone in its group; here such groups have advantage 0, as in prime-rl.\n\
          When: scores of 0 or 1 and prompts of very different difficulty; scores must not be negative.",
    needs: &[Need::Group],
    reads: &[],
    refuses: &[],
    run,
};

fn run(input: &AdvantageInput) -> AdvantageOutput {
    let own = |group: &[f64]| {
        let mean = mean(group);
        group.iter().map(|s| if mean > 0.0 { (s - mean) / mean } else { 0.0 }).collect()
    };
    input.spread(&input.by_group(&input.scores(), own))
}
