//! Token losses of supervised fine-tuning, as functions of the log-probability of one token. A loss is one file and one line in
//! [`TOKEN_LOSSES`]; the loss of a batch is the mean over its trained tokens, each times its weight.

mod dft;
mod entry;
mod nll;

pub use entry::TokenLoss;

use burnish_registry::Choice;

/// Every loss that `algorithm.loss_type` of supervised fine-tuning can name.
pub static TOKEN_LOSSES: &[TokenLoss] = &[nll::LOSS, dft::LOSS];

/// Returns the loss with this name or alias.
pub fn find(name: &str) -> Option<&'static TokenLoss> {
    TOKEN_LOSSES.iter().find(|loss| loss.name == name || loss.aliases.contains(&name))
}

/// Returns the names that a key may hold, for the configuration.
pub fn choices(key: &'static str) -> impl Iterator<Item = Choice> {
    TOKEN_LOSSES
        .iter()
        .flat_map(|loss| std::iter::once(&loss.name).chain(loss.aliases))
        .map(move |name| Choice::plain(key, *name))
}
