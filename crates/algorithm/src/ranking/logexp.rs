//! OpenRLHF's form of the loss of pairs, which has no margin.

use super::softplus::softplus_of_minus;
use super::{RankingForm, RankingLoss};

pub(super) const LOSS: RankingLoss = RankingLoss {
    name: "logexp",
    doc: "OpenRLHF's log-exp loss: the same as sigmoid, without a margin.\n\
          Formula: L = log(1 + e^(r⁻ − r⁺)), mean over the pairs.\n\
          Paper: Ouyang et al. 2022, InstructGPT, arXiv:2203.02155.\n\
          OpenRLHF: LogExpLoss.\n\
          Deviation: OpenRLHF adds 1 to the exponential itself, which overflows in float32 from a gap of 89; here the sum is \
          stable.\n\
          When: to repeat a run of OpenRLHF whose rows have margins that it did not read.",
    reads: &["data.chosen_key", "data.rejected_key", "algorithm.center_rewards_coefficient"],
    form: RankingForm::Pairs(|gap, _margin| softplus_of_minus(gap)),
};
