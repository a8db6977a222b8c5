//! OpenRLHF's GRPO: the standardised score, with the KL term outside of it.

use super::stats::standardised;
use super::{Estimator, openrlhf};
use burnish_registry::Need;

/// Added to the standard deviation.
const STD_EPSILON: f64 = 1e-9;

pub(super) const ESTIMATOR: Estimator = Estimator {
    name: "group_norm",
    aliases: &[],
    doc: "OpenRLHF's GRPO: the score, standardised in its group and clipped, and the KL term of the following tokens.\n\
          Formula: r_t = [t last]·clip((s_i − mean)/(std + 1e-9), ±10) − β·kl_t, std with n−1; A_t = G_t = Σ_{t'≥t} r_t'.\n\
          Paper: Shao et al. 2024, DeepSeekMath, arXiv:2402.03300.\n\
          OpenRLHF: compute_advantages_and_returns with estimator group_norm.\n\
          Deviation: KL estimates are not clamped to ±10, and a group of one, which OpenRLHF \
          refuses, has score 0.\n\
          When: GRPO with a KL term in the reward that should act on each token and not change the group's deviation.",
    needs: &[Need::Group],
    reads: &[openrlhf::CLIP_RANGE],
    refuses: openrlhf::REFUSES,
    run: |input| openrlhf::run(input, |group| standardised(group, STD_EPSILON), 1.0, false),
};
