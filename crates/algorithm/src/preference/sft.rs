//! The likelihood of the chosen responses, for use with other losses.

use super::entry::{Form, Nll, PreferenceLoss};
use super::sigmoid::SIGMOID;

pub(super) const LOSS: PreferenceLoss = PreferenceLoss {
    name: "sft",
    aliases: &[],
    doc: "The mean negative log-likelihood of the tokens of chosen answers.\n\
          Formula: −Σ log π / N over all N tokens of the chosen answers of the mini-batch.\n\
          Paper: Pang et al. 2024, Iterative reasoning preference optimization, arXiv:2404.19733.\n\
          TRL: DPOTrainer with loss_type sft, where the micro-batch is the mini-batch; earlier, rpo_alpha.\n\
          When: with another loss, to hold up the likelihood of chosen answers: loss_type=[sigmoid,sft].",
    form: Form::Nll,
    reference: false,
    nll: Some(Nll { prompts: false, coefficient: |_| 1.0 }),
    reads: &["algorithm.beta"],
    refuses: &[],
    ..SIGMOID
};
