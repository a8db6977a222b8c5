//! ORPO: supervised fine-tuning with a penalty on the odds of rejected answers.

use super::dual::Dual;
use super::entry::{BETA, Form, Nll, Pair, PreferenceLoss, WITHOUT_REFERENCE};
use super::sigmoid::SIGMOID;

pub(super) const LOSS: PreferenceLoss = PreferenceLoss {
    name: "orpo",
    aliases: &[],
    doc: "Supervised fine-tuning on prompts and chosen answers, with a term that makes their odds larger than those of rejected ones.\n\
          Formula: NLL − β·LS(o), o = a⁺ − a⁻ − (log(1 − e^a⁺) − log(1 − e^a⁻)), a = log π per token; NLL = the mean over all \
          tokens of prompts and chosen answers of the mini-batch.\n\
          Paper: Hong et al. 2024, ORPO, arXiv:2403.07691.\n\
          TRL: ORPOTrainer, where the micro-batch is the mini-batch.\n\
          When: one stage from a base model, without a reference; lr 5e-6 to 8e-6, β 0.1 (the paper's λ).",
    form: Form::Pair(|pair| -log_odds(pair).log_sigmoid() * pair.beta()),
    reference: false,
    reward: |side, _| side.mean(),
    per_token: true,
    reports: &[("log_odds_ratio", |pair| log_odds(pair).log_sigmoid().value), ("log_odds_chosen", |pair| log_odds(pair).value)],
    nll: Some(Nll { prompts: true, coefficient: |_| 1.0 }),
    reads: &[BETA],
    refuses: WITHOUT_REFERENCE,
    ..SIGMOID
};

/// The logarithm of the odds ratio of the two answers.
fn log_odds(pair: &Pair) -> Dual {
    let (chosen, rejected) = (pair.chosen.mean(), pair.rejected.mean());
    chosen - rejected - (chosen.log_1m_exp() - rejected.log_1m_exp())
}
