//! TPO: preferences of two answers, and the likelihood of a third, the gold answer.

use super::dual::Dual;
use super::entry::{BETA, Form, LABEL_SMOOTHING, Pair, PreferenceLoss, Side, Smoothing, WITHOUT_REFERENCE};
use super::sigmoid::{SIGMOID, smoothed};
use crate::options::Options;

const TPO_ALPHA: &str = "algorithm.tpo_alpha";
const TPO_L_GAMMA: &str = "algorithm.tpo_l_gamma";

pub(super) const TPO: PreferenceLoss = PreferenceLoss {
    name: "tpo",
    aliases: &[],
    doc: "TPO: DPO with a uniform reference, and the likelihood of a gold answer to each prompt, a third response of the row.\n\
          Formula: d = log π⁺ − log π⁻; −(1−ε)·LS(βd) − ε·LS(−βd) + tpo_alpha·NLL, NLL = −Σ log π / N over the tokens of the gold \
          answers of the mini-batch.\n\
          Paper: Saeidi et al. 2024, TPO, arXiv:2405.16681.\n\
          TRL: TPOTrainer with loss_type sigmoid, where the micro-batch is the mini-batch.\n\
          When: rows have a better answer than both answers that were compared; β 0.01.",
    form: Form::Pair(|pair| smoothed(difference(pair, of_sum) * pair.beta(), pair.number("label_smoothing"))),
    reference: false,
    reward: of_sum,
    gold: Some(|options| options.number("tpo_alpha")),
    reads: &[BETA, LABEL_SMOOTHING, TPO_ALPHA],
    refuses: WITHOUT_REFERENCE,
    smoothing: Some(Smoothing { positive: false, below: 0.5 }),
    ..SIGMOID
};

pub(super) const TPO_HINGE: PreferenceLoss = PreferenceLoss {
    name: "tpo_hinge",
    doc: "TPO with a hinge.\n\
          Formula: max(0, 1 − βd) + tpo_alpha·NLL, d and NLL as in tpo.\n\
          Paper: Saeidi et al. 2024, TPO, arXiv:2405.16681.\n\
          TRL: TPOTrainer with loss_type hinge.\n\
          When: as hinge, with gold answers and without a reference.",
    form: Form::Pair(|pair| (Dual::constant(1.0) - difference(pair, of_sum) * pair.beta()).relu()),
    reads: &[BETA, TPO_ALPHA],
    smoothing: None,
    ..TPO
};

pub(super) const TPO_IPO: PreferenceLoss = PreferenceLoss {
    name: "tpo_ipo",
    doc: "TPO with IPO's squared distance, on log-probabilities per token.\n\
          Formula: (a⁺ − a⁻ − 1/(2β))² + tpo_alpha·NLL, a = log π per token, NLL as in tpo.\n\
          Paper: Saeidi et al. 2024, TPO, arXiv:2405.16681.\n\
          TRL: TPOTrainer with loss_type ipo.\n\
          When: as ipo, with gold answers and without a reference.",
    form: Form::Pair(|pair| (difference(pair, of_mean) - 0.5 / pair.beta()).squared()),
    reward: of_mean,
    per_token: true,
    ..TPO_HINGE
};

pub(super) const TPO_L: PreferenceLoss = PreferenceLoss {
    name: "tpo_l",
    aliases: &["tpo-l"],
    doc: "TPO on log-probabilities per token, with a target margin.\n\
          Formula: d = β·(a⁺ − a⁻) − tpo_l_gamma, a = log π per token; −(1−ε)·LS(d) − ε·LS(−d) + tpo_alpha·NLL, NLL as in tpo.\n\
          Paper: Saeidi et al. 2024, TPO, arXiv:2405.16681.\n\
          TRL: TPOTrainer with loss_type tpo-l.\n\
          When: as tpo, and answers should not grow longer; β 2.",
    form: Form::Pair(|pair| {
        let margin = difference(pair, of_mean) * pair.beta() - pair.number("tpo_l_gamma");
        smoothed(margin, pair.number("label_smoothing"))
    }),
    reward: of_mean,
    per_token: true,
    reads: &[BETA, LABEL_SMOOTHING, TPO_ALPHA, TPO_L_GAMMA],
    ..TPO
};

fn difference(pair: &Pair, reward: fn(&Side, &Options) -> Dual) -> Dual {
    reward(&pair.chosen, pair.options) - reward(&pair.rejected, pair.options)
}

fn of_sum(side: &Side, _: &Options) -> Dual {
    side.log_prob
}

fn of_mean(side: &Side, _: &Options) -> Dual {
    side.mean()
}
