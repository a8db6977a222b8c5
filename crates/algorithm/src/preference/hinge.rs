//! SLiC: a hinge on the margin.

use super::dual::Dual;
use super::entry::{Form, PreferenceLoss};
use super::sigmoid::SIGMOID;

pub(super) const LOSS: PreferenceLoss = PreferenceLoss {
    name: "hinge",
    aliases: &["slic"],
    doc: "A hinge: pairs with a margin of 1/β or more teach nothing.\n\
          Formula: max(0, 1 − βδ).\n\
          Paper: Zhao et al. 2023, SLiC-HF, arXiv:2305.10425; Liu et al. 2023, RSO, arXiv:2309.06657.\n\
          TRL: DPOTrainer with loss_type hinge.\n\
          When: margins should not grow without end; β is the reciprocal of the wanted margin.",
    form: Form::Pair(|pair| (Dual::constant(1.0) - pair.margin()).relu()),
    ..SIGMOID
};
