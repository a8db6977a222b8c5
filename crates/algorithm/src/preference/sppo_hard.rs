//! SPPO with hard preferences.

use super::entry::{Form, PreferenceLoss};
use super::nca_pair::NCA_PAIR;

pub(super) const LOSS: PreferenceLoss = PreferenceLoss {
    name: "sppo_hard",
    aliases: &[],
    doc: "SPPO: each answer's log-ratio is drawn to its own side of 0.\n\
          Formula: (Δ⁺ − 1/(2β))² + (Δ⁻ + 1/(2β))².\n\
          Paper: Wu et al. 2024, Self-play preference optimization, arXiv:2405.00675.\n\
          TRL: DPOTrainer with loss_type sppo_hard.\n\
          When: pairs of the policy's own samples, in rounds.",
    form: Form::Pair(|pair| {
        let target = 0.5 / pair.beta();
        (pair.chosen.ratio() - target).squared() + (pair.rejected.ratio() + target).squared()
    }),
    ..NCA_PAIR
};
