//! The loss of Bradley and Terry's model of preferences, with a margin.

use super::entry::OF_PAIRS;
use super::softplus::softplus_of_minus;
use super::{RankingForm, RankingLoss};

pub(super) const LOSS: RankingLoss = RankingLoss {
    name: "sigmoid",
    doc: "Bradley-Terry: the chosen answer should score higher than the rejected one.\n\
          Formula: L = −log σ(r⁺ − r⁻ − m), mean over the pairs; m is the row's margin (data.margin_key), or 0.\n\
          Paper: Ouyang et al. 2022, InstructGPT, arXiv:2203.02155; margin: Touvron et al. 2023, Llama 2, arXiv:2307.09288.\n\
          TRL: RewardTrainer.\n\
          OpenRLHF: PairWiseLoss, with margin_loss_enable where there is a margin.\n\
          When: the default.",
    reads: OF_PAIRS,
    form: RankingForm::Pairs(|gap, margin| softplus_of_minus(gap - margin)),
};
