//! TRL's GDPO: like gdpo, but normalised over the responses of the batch rather than over their tokens.

use super::Estimator;
use super::gdpo::{REFUSES, weighted_sum};
use super::stats::standardised;
use super::trl_grpo::STD_EPSILON;
use burnish_registry::Need;

pub(super) const ESTIMATOR: Estimator = Estimator {
    name: "trl_gdpo",
    aliases: &[],
    doc: "TRL's GDPO: several rewards, each standardised within its group, added up, and standardised over the responses of the batch.\n\
          Formula: z_ik = (r_ik − mean_k)/(std_k + 1e-4); R_i = Σ_k w_k·z_ik; A_i = (R_i − mean R)/(std R + 1e-4); every std with n−1.\n\
          Paper: Liu et al. 2026, GDPO, arXiv:2601.05242.\n\
          TRL: GRPOTrainer with multi_objective_aggregation=normalize_then_sum.\n\
          Deviation: a response that abstentions leave alone in its group has advantage 0, and is left out of the mean and std of the \
          batch; TRL counts it as R = 0.\n\
          When: several rewards of different size or frequency, and responses of different length that should weigh the same; a KL \
          term in the reward does not reach it, so use a KL loss.",
    needs: &[Need::Group, Need::Components],
    reads: &[],
    refuses: REFUSES,
    run: |input| {
        let sums = weighted_sum(input, |group| standardised(group, STD_EPSILON));
        input.spread(&standardised(&sums, STD_EPSILON))
    },
};
