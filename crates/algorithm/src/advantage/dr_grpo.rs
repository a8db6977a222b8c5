//! OpenRLHF's Dr. GRPO: the centred score, with the KL term outside of it.

use super::stats::centred;
use super::{Estimator, openrlhf};
use burnish_registry::Need;

pub(super) const ESTIMATOR: Estimator = Estimator {
    name: "dr_grpo",
    aliases: &[],
    doc: "OpenRLHF's Dr. GRPO: the score less the mean of its group, clipped, and the KL term of the following tokens.\n\
          Formula: r_t = [t last]·clip(s_i − mean, ±10) − β·kl_t; A_t = G_t = Σ_{t'≥t} r_t'.\n\
          Paper: Liu et al. 2025, Dr. GRPO, arXiv:2503.20783.\n\
          OpenRLHF: compute_advantages_and_returns with estimator dr_grpo.\n\
          Deviation: KL estimates are not clamped to ±10, and a group of one, which OpenRLHF \
          refuses, has score 0. The paper's loss is loss_agg_mode=seq-mean-token-sum-norm, chosen separately.\n\
          When: Dr. GRPO with a KL term in the reward; without one, grpo with norm_adv_by_std_in_grpo=false is the same up to the clip.",
    needs: &[Need::Group],
    reads: &[openrlhf::CLIP_RANGE],
    refuses: openrlhf::REFUSES,
    run: |input| openrlhf::run(input, centred, 1.0, false),
};
