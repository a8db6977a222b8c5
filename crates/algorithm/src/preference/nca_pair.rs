//! NCA and BCO on pairs: each response is compared with the reference separately.

use super::entry::{BETA, Form, PreferenceLoss, REVERSE_KL_ALONE};
use super::sigmoid::SIGMOID;

pub(crate) const NCA_PAIR: PreferenceLoss = PreferenceLoss {
    name: "nca_pair",
    aliases: &[],
    doc: "NCA: the likelihood of each answer by itself, not only of the order, so that the chosen one's does not fall.\n\
          Formula: −LS(βΔ⁺) − ½·LS(−βΔ⁺) − ½·LS(−βΔ⁻).\n\
          Paper: Chen et al. 2024, Noise contrastive alignment, arXiv:2402.05369.\n\
          TRL: DPOTrainer with loss_type nca_pair.\n\
          When: the log-probability of chosen answers falls with DPO.",
    form: Form::Pair(|pair| {
        let (chosen, rejected) = pair.rewards();
        -chosen.log_sigmoid() - ((-chosen).log_sigmoid() + (-rejected).log_sigmoid()) * 0.5
    }),
    reads: &[BETA],
    refuses: REVERSE_KL_ALONE,
    ..SIGMOID
};

pub(crate) const BCO_PAIR: PreferenceLoss = PreferenceLoss {
    name: "bco_pair",
    aliases: &[],
    doc: "BCO on pairs: a classifier whose logit is an answer's reward.\n\
          Formula: −LS(βΔ⁺) − LS(−βΔ⁻).\n\
          Paper: Jung et al. 2024, Binary classifier optimization, arXiv:2404.04656.\n\
          TRL: DPOTrainer with loss_type bco_pair, which has no running mean of rewards.\n\
          When: with other losses, as in MPO: loss_type=[sigmoid,bco_pair,sft].",
    form: Form::Pair(|pair| {
        let (chosen, rejected) = pair.rewards();
        -chosen.log_sigmoid() - (-rejected).log_sigmoid()
    }),
    ..NCA_PAIR
};
