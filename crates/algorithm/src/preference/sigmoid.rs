//! DPO, and the variants that are −log σ of the margin.

use super::dual::Dual;
use super::entry::{BETA, F_ALPHA, F_DIVERGENCE, Form, LABEL_SMOOTHING, Pair, PreferenceLoss, Smoothing};

pub(crate) const SIGMOID: PreferenceLoss = PreferenceLoss {
    name: "sigmoid",
    aliases: &["dpo"],
    doc: "DPO: the log-likelihood of the preferences, if an answer's reward is β times its log-ratio.\n\
          Formula: −LS(βΔ).\n\
          Paper: Rafailov et al. 2023, DPO, arXiv:2305.18290.\n\
          TRL: DPOTrainer with loss_type sigmoid, which ignores label_smoothing too.\n\
          OpenRLHF: DPOLoss.\n\
          When: the first choice.",
    form: Form::Pair(|pair| -pair.margin().log_sigmoid()),
    reference: true,
    reward: |side, _| side.ratio(),
    per_token: false,
    reports: &[],
    nll: None,
    gold: None,
    reads: &[BETA, F_DIVERGENCE, F_ALPHA],
    refuses: &[],
    smoothing: None,
};

pub(crate) const CDPO: PreferenceLoss = PreferenceLoss {
    name: "cdpo",
    doc: "Conservative DPO: as if a share of the labels were wrong.\n\
          Formula: −(1−ε)·LS(βΔ) − ε·LS(−βΔ), ε = label_smoothing.\n\
          Paper: Mitchell 2023, A note on DPO with noisy preferences.\n\
          OpenRLHF: DPOLoss with label_smoothing.\n\
          When: labels are noisy, and the margin should stop growing at log((1−ε)/ε)/β.",
    aliases: &[],
    form: Form::Pair(|pair| smoothed(pair.margin(), pair.number("label_smoothing"))),
    reads: &[BETA, F_DIVERGENCE, F_ALPHA, LABEL_SMOOTHING],
    smoothing: Some(Smoothing { positive: false, below: 0.5 }),
    ..SIGMOID
};

pub(crate) const ROBUST: PreferenceLoss = PreferenceLoss {
    name: "robust",
    aliases: &[],
    doc: "DPO made unbiased by a known share of wrong labels.\n\
          Formula: (−(1−ε)·LS(βδ) + ε·LS(−βδ))/(1 − 2ε), ε = label_smoothing < 0.5.\n\
          Paper: Chowdhury et al. 2024, Provably robust DPO, arXiv:2403.00409.\n\
          TRL: DPOTrainer with loss_type robust.\n\
          When: the share of wrong labels is known.",
    form: Form::Pair(|pair| {
        let (margin, wrong) = (pair.margin(), pair.number("label_smoothing"));
        (margin.log_sigmoid() * (wrong - 1.0) + (-margin).log_sigmoid() * wrong) * (1.0 / (1.0 - 2.0 * wrong))
    }),
    ..CDPO
};

pub(crate) const SIGMOID_NORM: PreferenceLoss = PreferenceLoss {
    name: "sigmoid_norm",
    aliases: &[],
    doc: "DPO on scores per token, so that a long answer has no larger margin for its length.\n\
          Formula: −LS(β(s⁺/n⁺ − s⁻/n⁻)), n the number of tokens.\n\
          Paper: Lambert et al. 2024, Tülu 3, arXiv:2411.15124.\n\
          TRL: DPOTrainer with loss_type sigmoid_norm.\n\
          When: answers grow longer in training; β is then to be larger, 2 to 10.",
    form: Form::Pair(|pair: &Pair| {
        let (chosen, rejected) = pair.scores();
        let margin = chosen * (1.0 / pair.chosen.tokens) - rejected * (1.0 / pair.rejected.tokens);
        -(margin * pair.beta()).log_sigmoid()
    }),
    ..SIGMOID
};

/// −(1−ε)·log σ(x) − ε·log σ(−x).
pub(super) fn smoothed(x: Dual, wrong: f64) -> Dual {
    x.log_sigmoid() * (wrong - 1.0) - (-x).log_sigmoid() * wrong
}
