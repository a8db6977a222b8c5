//! The negative log-likelihood.

use super::entry::TokenLoss;

pub(super) const LOSS: TokenLoss = TokenLoss {
    name: "nll",
    aliases: &["chunked_nll"],
    doc: "The negative log-likelihood: cross-entropy against the token that is there.\n\
          Formula: L = −log π.\n\
          verl: sft_loss. TRL: SFTTrainer, loss_type nll; chunked_nll was its name for a head in chunks, which every head is here.\n\
          When: unless there is a reason for another.",
    loss_and_slope: |log_prob| (-log_prob, -1.0),
};
