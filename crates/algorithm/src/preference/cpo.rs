//! CPO and its successors SimPO and AlphaPO.

use super::dual::Dual;
use super::entry::{BETA, Form, LABEL_SMOOTHING, Nll, Pair, PreferenceLoss, Side, Smoothing, WITHOUT_REFERENCE};
use super::sigmoid::{SIGMOID, smoothed};
use crate::options::Options;

const CPO_ALPHA: &str = "algorithm.cpo_alpha";
const SIMPO_GAMMA: &str = "algorithm.simpo_gamma";
const ALPHA: &str = "algorithm.alpha";

pub(super) const CPO: PreferenceLoss = PreferenceLoss {
    name: "cpo",
    aliases: &[],
    doc: "CPO: DPO with a uniform reference, and the likelihood of chosen answers.\n\
          Formula: d = r(log π⁺) − r(log π⁻); −(1−ε)·LS(βd) − ε·LS(−βd) + cpo_alpha·NLL, NLL = −Σ log π / N over the chosen \
          answers' tokens; r(a) = a, or with alpha: (1 − e^(−alpha·a))/alpha.\n\
          Paper: Xu et al. 2024, CPO, arXiv:2401.08417.\n\
          TRL: CPOTrainer with loss_type sigmoid, where the micro-batch is the mini-batch.\n\
          When: no memory or time for a reference.",
    form: Form::Pair(|pair| smoothed(difference(pair, of_sum) * pair.beta(), pair.number("label_smoothing"))),
    reference: false,
    reward: of_sum,
    nll: Some(Nll { prompts: false, coefficient: |options| options.number("cpo_alpha") }),
    reads: &[BETA, LABEL_SMOOTHING, CPO_ALPHA, ALPHA],
    refuses: WITHOUT_REFERENCE,
    smoothing: Some(Smoothing { positive: false, below: 0.5 }),
    ..SIGMOID
};

pub(crate) const CPO_HINGE: PreferenceLoss = PreferenceLoss {
    name: "cpo_hinge",
    doc: "CPO with a hinge.\n\
          Formula: max(0, 1 − βd) + cpo_alpha·NLL, d as in cpo.\n\
          Paper: Xu et al. 2024, CPO, arXiv:2401.08417.\n\
          TRL: CPOTrainer with loss_type hinge.\n\
          When: as hinge, without a reference.",
    form: Form::Pair(|pair| (Dual::constant(1.0) - difference(pair, of_sum) * pair.beta()).relu()),
    reads: &[BETA, CPO_ALPHA, ALPHA],
    smoothing: None,
    ..CPO
};

pub(crate) const CPO_IPO: PreferenceLoss = PreferenceLoss {
    name: "cpo_ipo",
    doc: "CPO with IPO's squared distance, on log-probabilities per token.\n\
          Formula: (d − 1/(2β))² + cpo_alpha·NLL, d as in simpo without its margin.\n\
          Paper: Xu et al. 2024, CPO, arXiv:2401.08417.\n\
          TRL: CPOTrainer with loss_type ipo.\n\
          When: as ipo, without a reference.",
    form: Form::Pair(|pair| (difference(pair, of_mean) - 0.5 / pair.beta()).squared()),
    reward: of_mean,
    per_token: true,
    ..CPO_HINGE
};

pub(crate) const SIMPO: PreferenceLoss = PreferenceLoss {
    name: "simpo",
    doc: "SimPO: log-probabilities per token and a target margin, without a reference.\n\
          Formula: d = r(a⁺) − r(a⁻) − simpo_gamma/β, a = log π per token; −(1−ε)·LS(βd) − ε·LS(−βd) + cpo_alpha·NLL.\n\
          Paper: Meng et al. 2024, SimPO, arXiv:2405.14734, with cpo_alpha 0.\n\
          TRL: CPOTrainer with loss_type simpo, whose cpo_alpha is 1 by default as here.\n\
          When: no reference, and answers should not grow longer; cpo_alpha 0, β 2 to 2.5, simpo_gamma/β 0.3 to 0.5, lr 3e-7 to 1e-6.",
    form: Form::Pair(simpo),
    reward: of_mean,
    per_token: true,
    reads: &[BETA, LABEL_SMOOTHING, CPO_ALPHA, ALPHA, SIMPO_GAMMA],
    ..CPO
};

pub(crate) const ALPHAPO: PreferenceLoss = PreferenceLoss {
    name: "alphapo",
    doc: "AlphaPO: SimPO with another shape of the reward, and without the likelihood.\n\
          Formula: as simpo with cpo_alpha 0; r(a) = (1 − e^(−alpha·a))/alpha.\n\
          Paper: Gupta et al. 2025, AlphaPO, arXiv:2501.03884.\n\
          TRL: CPOTrainer with loss_type alphapo.\n\
          When: SimPO lowers the likelihood of chosen answers too much; alpha 0.1 to 0.25.",
    nll: None,
    reads: &[BETA, LABEL_SMOOTHING, ALPHA, SIMPO_GAMMA],
    ..SIMPO
};

fn simpo(pair: &Pair) -> Dual {
    let margin = difference(pair, of_mean) * pair.beta() - pair.number("simpo_gamma");
    smoothed(margin, pair.number("label_smoothing"))
}

/// The reward of the chosen answer minus the reward of the rejected answer.
fn difference(pair: &Pair, reward: fn(&Side, &Options) -> Dual) -> Dual {
    reward(&pair.chosen, pair.options) - reward(&pair.rejected, pair.options)
}

fn of_sum(side: &Side, options: &Options) -> Dual {
    shaped(side.log_prob, options.number("alpha"))
}

fn of_mean(side: &Side, options: &Options) -> Dual {
    shaped(side.mean(), options.number("alpha"))
}

/// AlphaPO's reward (1 − e^(−alpha·a))/alpha, whose limit at alpha = 0 is a.
fn shaped(a: Dual, alpha: f64) -> Dual {
    if alpha == 0.0 { a } else { (Dual::constant(1.0) - (a * -alpha).exp()) * (1.0 / alpha) }
}
