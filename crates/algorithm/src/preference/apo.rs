//! APO: the chosen answer's likelihood rises (zero), or falls less than the rejected one's (down).

use super::dual::Dual;
use super::entry::{Form, PreferenceLoss};
use super::nca_pair::NCA_PAIR;

pub(crate) const APO_ZERO: PreferenceLoss = PreferenceLoss {
    name: "apo_zero",
    aliases: &[],
    doc: "APO-zero: the chosen answer becomes likelier, the rejected one less likely.\n\
          Formula: 1 − σ(βΔ⁺) + σ(βΔ⁻).\n\
          Paper: D'Oosterlinck et al. 2024, Anchored preference optimization, arXiv:2408.06266.\n\
          TRL: DPOTrainer with loss_type apo_zero.\n\
          When: chosen answers are better than what the policy writes.",
    form: Form::Pair(|pair| {
        let (chosen, rejected) = pair.rewards();
        Dual::constant(1.0) - chosen.sigmoid() + rejected.sigmoid()
    }),
    ..NCA_PAIR
};

pub(crate) const APO_DOWN: PreferenceLoss = PreferenceLoss {
    name: "apo_down",
    aliases: &[],
    doc: "APO-down: both answers become less likely, the rejected one more so.\n\
          Formula: σ(βΔ⁺) + 1 − σ(β(Δ⁺ − Δ⁻)).\n\
          Paper: D'Oosterlinck et al. 2024, Anchored preference optimization, arXiv:2408.06266.\n\
          TRL: DPOTrainer with loss_type apo_down.\n\
          When: the policy writes better answers than the chosen ones.",
    form: Form::Pair(|pair| {
        let (chosen, rejected) = pair.rewards();
        chosen.sigmoid() + 1.0 - (chosen - rejected).sigmoid()
    }),
    ..NCA_PAIR
};
