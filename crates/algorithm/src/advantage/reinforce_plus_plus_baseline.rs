//! REINFORCE++ with the mean of the group as baseline.

use super::stats::centred;
use super::{AdvantageInput, AdvantageOutput, Estimator};
use burnish_registry::Need;

pub(super) const ESTIMATOR: Estimator = Estimator {
    name: "reinforce_plus_plus_baseline",
    aliases: &[],
    doc: "The score less the mean of its group, whitened over the trained tokens of the batch.\n\
          Formula: A = whiten(s_i − mean), whiten(x) = (x − mean x)/sqrt(var x + 1e-8) over all trained tokens; alone in its group: \
          mean 0.\n\
          Paper: Hu 2025, REINFORCE++, arXiv:2501.03262.\n\
          verl: compute_reinforce_plus_plus_baseline_outcome_advantage.\n\
          Deviation: verl raises on a batch with fewer than two trained tokens; here their advantage is 0.\n\
          When: groups whose scores differ on very different scales, or so few responses to a prompt that their own deviation is noise.",
    needs: &[Need::Group],
    reads: &[],
    refuses: &[],
    run,
};

fn run(input: &AdvantageInput) -> AdvantageOutput {
    let own = |group: &[f64]| if group.len() == 1 { group.to_vec() } else { centred(group) };
    input.spread_whitened(&input.by_group(&input.scores(), own))
}
