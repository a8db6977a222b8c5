//! GPG: centred scores, divided by the share of the batch whose score is not 0.

use super::stats::centred;
use super::{AdvantageInput, AdvantageOutput, Estimator};
use burnish_registry::Need;

pub(super) const ESTIMATOR: Estimator = Estimator {
    name: "gpg",
    aliases: &[],
    doc: "Group policy gradient: the centred score, scaled up where many scores are 0.\n\
          Formula: A_i = α·(s_i − mean), α = N/max(number of s ≠ 0, 1) over the N responses of the batch; alone in its group: mean 0.\n\
          Paper: Chu et al. 2025, GPG, arXiv:2504.02546.\n\
          verl: compute_gpg_outcome_advantage.\n\
          When: with the policy loss gpg, on tasks that are rarely solved; the scale follows the share of scores that are not 0, so \
          not with scores such as −1 and 1.",
    needs: &[Need::Group],
    reads: &[],
    refuses: &[],
    run,
};

fn run(input: &AdvantageInput) -> AdvantageOutput {
    let scores = input.scores();
    let scored = scores.iter().filter(|&&s| s != 0.0).count();
    let alpha = scores.len() as f64 / scored.max(1) as f64;
    let mut advantages = input.by_group(&scores, |group| if group.len() == 1 { group.to_vec() } else { centred(group) });
    advantages.iter_mut().for_each(|a| *a *= alpha);
    input.spread(&advantages)
}
