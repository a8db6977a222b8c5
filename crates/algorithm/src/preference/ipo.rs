//! IPO: a squared distance from a margin of 1/(2β).

use super::entry::{BETA, Form, PreferenceLoss, REVERSE_KL_ALONE};
use super::sigmoid::SIGMOID;

pub(super) const IPO: PreferenceLoss = PreferenceLoss {
    name: "ipo",
    aliases: &[],
    doc: "IPO on scores per token: the margin is drawn to 1/(2β) and not beyond.\n\
          Formula: (s⁺/n⁺ − s⁻/n⁻ − 1/(2β))², n the number of tokens.\n\
          Paper: Azar et al. 2023, A general theoretical paradigm, arXiv:2310.12036.\n\
          TRL: DPOTrainer with loss_type ipo.\n\
          When: preferences are nearly deterministic, where DPO's margins grow without end.",
    form: Form::Pair(|pair| {
        let (chosen, rejected) = pair.scores();
        let margin = chosen * (1.0 / pair.chosen.tokens) - rejected * (1.0 / pair.rejected.tokens);
        (margin - 0.5 / pair.beta()).squared()
    }),
    ..SIGMOID
};

pub(crate) const IPO_SUM: PreferenceLoss = PreferenceLoss {
    name: "ipo_sum",
    aliases: &[],
    doc: "IPO as in its paper, on whole answers.\n\
          Formula: (Δ − 1/(2β))².\n\
          Paper: Azar et al. 2023, A general theoretical paradigm, arXiv:2310.12036.\n\
          OpenRLHF: DPOLoss with ipo.\n\
          When: continuing what OpenRLHF began; otherwise `ipo`, whose margin does not depend on the length.",
    form: Form::Pair(|pair| (pair.chosen.ratio() - pair.rejected.ratio() - 0.5 / pair.beta()).squared()),
    reads: &[BETA],
    refuses: REVERSE_KL_ALONE,
    ..SIGMOID
};
