//! EXO: the reverse KL between the smoothed preferences and the preferences of the policy.

use super::entry::{Form, PreferenceLoss, Smoothing};
use super::sigmoid::{CDPO, SIGMOID};

pub(super) const LOSS: PreferenceLoss = PreferenceLoss {
    name: "exo_pair",
    aliases: &[],
    doc: "EXO: the reverse KL from the policy's preference to the smoothed label.\n\
          Formula: σ(βδ)·(LS(βδ) − log(1−ε)) + σ(−βδ)·(LS(−βδ) − log ε), ε = label_smoothing > 0.\n\
          Paper: Ji et al. 2024, EXO, arXiv:2402.00856.\n\
          TRL: DPOTrainer with loss_type exo_pair.\n\
          When: the policy should settle on a mode; label_smoothing 1e-3.",
    form: Form::Pair(|pair| {
        let (margin, wrong) = (pair.margin(), pair.number("label_smoothing"));
        let up = margin.sigmoid() * (margin.log_sigmoid() - (-wrong).ln_1p());
        up + (-margin).sigmoid() * ((-margin).log_sigmoid() - wrong.ln())
    }),
    reads: CDPO.reads,
    smoothing: Some(Smoothing { positive: true, below: 1.0 }),
    ..SIGMOID
};
