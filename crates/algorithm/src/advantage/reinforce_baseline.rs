//! OpenRLHF's REINFORCE with the mean of the group as baseline.

use super::stats::centred;
use super::{Estimator, openrlhf};
use burnish_registry::Need;

pub(super) const ESTIMATOR: Estimator = Estimator {
    name: "reinforce_baseline",
    aliases: &[],
    doc: "OpenRLHF's REINFORCE with the group's mean as baseline, outside which the KL term stays, whitened over the batch.\n\
          Formula: r_t = [t last]·clip(s_i − mean, ±10) − β·kl_t; G_t = Σ_{t'≥t} r_t'; A = (G − mean)/sqrt(max(var, 1e-8)), var with n, \
          over all trained tokens.\n\
          Paper: Hu 2025, REINFORCE++, arXiv:2501.03262.\n\
          OpenRLHF: compute_advantages_and_returns with estimator reinforce_baseline.\n\
          Deviation: no_std_norm is not offered, a batch without trained tokens is not NaN, \
          and KL estimates are not clamped to ±10.\n\
          When: groups of few responses, with a KL term in the reward that should act on each token rather than on the whole response.",
    needs: &[Need::Group],
    reads: &[openrlhf::CLIP_RANGE],
    refuses: openrlhf::REFUSES,
    run: |input| openrlhf::run(input, centred, 1.0, true),
};
