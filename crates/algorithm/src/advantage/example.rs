//! `centred`: the score less the mean score of its group.

use super::{AdvantageInput, AdvantageOutput, Estimator};
use burnish_registry::Need;

pub(super) const ESTIMATOR: Estimator = Estimator {
    name: "centred",
    aliases: &[],
    doc: "REINFORCE with the mean of the group as baseline.\n\
          Formula: A_i = s_i − mean.\n\
          Paper: Liu et al. 2025, Dr. GRPO, arXiv:2503.20783.\n\
          verl: compute_grpo_outcome_advantage with norm_adv_by_std_in_grpo=False.\n\
          When: groups of many responses.",
    needs: &[Need::Group],
    reads: &[],
    refuses: &[],
    run,
};

fn run(input: &AdvantageInput) -> AdvantageOutput {
    let centred = |scores: &[f64]| {
        let mean = scores.iter().sum::<f64>() / scores.len() as f64;
        scores.iter().map(|score| score - mean).collect()
    };
    input.spread(&input.by_group(&input.scores(), centred))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advantages_are_centred_in_each_group() {
        let input = AdvantageInput {
            offsets: &[0, 2, 3, 4],
            rewards: &[0.0, 1.0, 0.0, 5.0],
            mask: &[1.0; 4],
            group: &[0, 0, 1],
            ..Default::default()
        };
        assert_eq!((ESTIMATOR.run)(&input).advantages, [0.5, 0.5, -0.5, 0.0]);
    }
}
