//! OpenRLHF's REINFORCE: discounted reward-to-go, whitened over the batch.

use super::{Estimator, openrlhf};

pub(super) const ESTIMATOR: Estimator = Estimator {
    name: "reinforce",
    aliases: &[],
    doc: "OpenRLHF's REINFORCE: the clipped score, discounted, and the KL term of the following tokens, whitened over the batch.\n\
          Formula: r_t = [t last]·clip(s_i, ±10) − β·kl_t; G_t = Σ_{t'≥t} γ^(t'−t)·r_t', positions of tools counted in t; \
          A = (G − mean)/sqrt(max(var, 1e-8)), var with n, over all trained tokens.\n\
          Paper: Williams 1992, Simple statistical gradient-following algorithms.\n\
          OpenRLHF: compute_advantages_and_returns with estimator reinforce.\n\
          Deviation: no_std_norm is not offered, a batch without trained tokens is not NaN, \
          and KL estimates are not clamped to ±10.\n\
          When: continuing what OpenRLHF began; otherwise reinforce_plus_plus, which neither clips nor discounts over tools.",
    needs: &[],
    reads: &["algorithm.gamma", openrlhf::CLIP_RANGE],
    refuses: openrlhf::REFUSES,
    run: |input| openrlhf::run(input, <[f64]>::to_vec, input.options.number("gamma"), true),
};
