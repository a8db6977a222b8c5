//! TRL's GRPO: like grpo, with a choice of the standard deviation to divide by.

use super::stats::{centred, mean, std};
use super::{AdvantageInput, AdvantageOutput, Estimator};
use burnish_registry::Need;

/// Added to every standard deviation.
pub(crate) const STD_EPSILON: f64 = 1e-4;

pub(super) const ESTIMATOR: Estimator = Estimator {
    name: "trl_grpo",
    aliases: &[],
    doc: "TRL's GRPO: the score less the mean of its group, divided by the deviation of the group, of the batch, or not at all.\n\
          Formula: A_i = (s_i − mean)/(std + 1e-4), std with n−1, of the group or of the batch (scale_rewards=group|batch); \
          scale_rewards=none: A_i = s_i − mean.\n\
          Paper: Shao et al. 2024, DeepSeekMath, arXiv:2402.03300; by the batch: Liu et al. 2025, Tricks or Traps, arXiv:2508.08221; \
          not at all: Liu et al. 2025, Dr. GRPO, arXiv:2503.20783.\n\
          TRL: GRPOTrainer with multi_objective_aggregation=sum_then_normalize.\n\
          Deviation: a response that abstentions leave alone in its group has advantage 0, as in TRL, but is left out of the \
          deviation of the batch.\n\
          When: continuing what TRL's GRPO began; scale_rewards=batch where groups have nearly equal scores, whose own deviation is noise.",
    needs: &[Need::Group],
    reads: &["algorithm.scale_rewards"],
    refuses: &[],
    run,
};

fn run(input: &AdvantageInput) -> AdvantageOutput {
    let scores = input.scores();
    let batch = std(&scores, mean(&scores));
    let own = |group: &[f64]| {
        let scale = match input.options.word("scale_rewards") {
            "group" => std(group, mean(group)) + STD_EPSILON,
            "batch" => batch + STD_EPSILON,
            _ => 1.0,
        };
        centred(group).iter().map(|s| s / scale).collect()
    };
    input.spread(&input.by_group(&scores, own))
}
