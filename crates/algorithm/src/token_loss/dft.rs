//! Dynamic fine-tuning: the likelihood, weighted by the probability.

use super::entry::TokenLoss;

pub(super) const LOSS: TokenLoss = TokenLoss {
    name: "dft",
    aliases: &[],
    doc: "Dynamic fine-tuning: each token counts by its probability, without a gradient through it, so that unlikely tokens do not \
          dominate.\n\
          Formula: L = −stop(π)·log π.\n\
          Paper: Wu et al. 2025, On the Generalization of SFT, arXiv:2508.05629.\n\
          TRL: SFTTrainer, loss_type dft.\n\
          When: the model knows the domain and the answers have several right forms.",
    loss_and_slope: |log_prob| {
        let prob = log_prob.exp();
        (-prob * log_prob, -prob)
    },
};
