//! KTO: answers with a label rather than pairs.

use super::dual::Dual;
use super::entry::{BETA, Form, Kl, OF_ROWS, PreferenceLoss, PreferenceRow};

const DESIRABLE: &str = "algorithm.desirable_weight";
const UNDESIRABLE: &str = "algorithm.undesirable_weight";

pub(super) const KTO: PreferenceLoss = PreferenceLoss {
    name: "kto",
    aliases: &[],
    doc: "KTO: desirable answers are to be likelier than the reference makes them, undesirable ones less likely, both measured from z.\n\
          Formula: z = max(0, mean of log π(y′) − log π_ref(y′)) without gradient, y′ an answer to another prompt: that of the row \
          before in the mini-batch, or of one further back where neighbours have the same prompt; \
          desirable: w_d·(1 − σ(β(Δ − z))); undesirable: w_u·(1 − σ(β(z − Δ))).\n\
          Paper: Ethayarajh et al. 2024, KTO, arXiv:2402.01306.\n\
          TRL: KTOTrainer, where the micro-batch is the mini-batch, and y′ is of the row before though it has the same prompt.\n\
          OpenRLHF: KTOLoss, whose y′ is the answer of the row after.\n\
          When: feedback is a thumb up or down; 8 rows or more in a batch, desirable_weight and undesirable_weight so that both labels \
          weigh about the same.",
    form: Form::Row { loss: kto, kl: Kl::Mismatched },
    reference: true,
    reward: |side, _| side.ratio(),
    per_token: false,
    reports: &[],
    nll: None,
    gold: None,
    reads: &[BETA, DESIRABLE, UNDESIRABLE],
    refuses: OF_ROWS,
    smoothing: None,
};

pub(crate) const APO_ZERO_UNPAIRED: PreferenceLoss = PreferenceLoss {
    name: "apo_zero_unpaired",
    doc: "APO-zero on answers with a label: no z, and so no second pass.\n\
          Formula: desirable: w_d·(1 − σ(βΔ)); undesirable: w_u·σ(βΔ).\n\
          Paper: D'Oosterlinck et al. 2024, Anchored preference optimization, arXiv:2408.06266.\n\
          TRL: KTOTrainer with loss_type apo_zero_unpaired.\n\
          When: as kto, where batches are small or time is short.",
    form: Form::Row { loss: kto, kl: Kl::Without },
    ..KTO
};

pub(crate) const KTO_VANILLA: PreferenceLoss = PreferenceLoss {
    name: "kto_vanilla",
    doc: "KTO for batches with both labels: z is the mean log-ratio of the answers with the other label, with its gradient.\n\
          Formula: desirable: 1 − σ(β(Δ − z⁻)), z⁻ = max(0, mean of Δ over undesirable answers); undesirable: 1 − σ(β(z⁺ − Δ)), z⁺ = \
          max(0, mean of Δ over desirable answers).\n\
          Paper: Ethayarajh et al. 2024, KTO, arXiv:2402.01306.\n\
          OpenRLHF: VanillaKTOLoss, for unpaired rows whose labels are balanced.\n\
          When: continuing what OpenRLHF began; otherwise `kto`.",
    form: Form::Row { loss: kto, kl: Kl::OtherLabel },
    ..KTO
};

fn kto(row: &PreferenceRow) -> Dual {
    let (value, weight) = match row.desirable {
        true => (row.ratio - row.kl, row.options.number("desirable_weight")),
        false => (row.kl - row.ratio, row.options.number("undesirable_weight")),
    };
    (Dual::constant(1.0) - (value * row.options.number("beta")).sigmoid()) * weight
}
