//! OpenRLHF's RLOO: the leave-one-out score, with the KL term outside of it.

use super::rloo::leave_one_out;
use super::{Estimator, openrlhf};
use burnish_registry::Need;

pub(super) const ESTIMATOR: Estimator = Estimator {
    name: "openrlhf_rloo",
    aliases: &[],
    doc: "OpenRLHF's RLOO: the leave-one-out score, clipped, and the KL term of the following tokens, which is not in the baseline.\n\
          Formula: r_t = [t last]·clip(s_i − (Σ_{j≠i} s_j)/(n−1), ±10) − β·kl_t; A_t = G_t = Σ_{t'≥t} r_t'.\n\
          Paper: Ahmadian et al. 2024, Back to Basics, arXiv:2402.14740.\n\
          OpenRLHF: compute_advantages_and_returns with estimator rloo.\n\
          Deviation: KL estimates are not clamped to ±10, and a group of one, which OpenRLHF \
          refuses, has score 0.\n\
          When: a KL term in the reward that should act on each token; rloo takes the whole response's KL into its score and baseline.",
    needs: &[Need::Group],
    reads: &[openrlhf::CLIP_RANGE],
    refuses: openrlhf::REFUSES,
    run: |input| {
        let own = |group: &[f64]| if group.len() == 1 { vec![0.0] } else { leave_one_out(group) };
        openrlhf::run(input, own, 1.0, false)
    },
};
