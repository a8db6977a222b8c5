//! Log-probabilities that a turn asks for in addition to those of its sampled tokens: of its prompt, and of the most probable
//! tokens in each place.

use std::sync::Arc;

/// The scores that a turn asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WantedScores {
    /// The number of most probable tokens in the place of each prompt token but the first; `None` if the prompt is not scored.
    pub prompt: Option<usize>,
    /// The number of most probable tokens in the place of each sampled token; 0 if these are not scored.
    pub sampled: usize,
}

/// The scores of n consecutive tokens. The log-probabilities are natural logarithms under the model's own distribution at
/// temperature 1; sampling settings do not change them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenScores {
    /// `[n]`, of the tokens.
    pub log_probs: Vec<f32>,
    /// `[n]`: the number of tokens of the vocabulary that are at least as probable as the token, as in vLLM; 1 for the most
    /// probable one.
    pub ranks: Vec<u32>,
    /// The number of most probable tokens in each place.
    pub top: usize,
    /// [n, top], the most probable first.
    pub top_ids: Vec<u32>,
    /// [n, top]
    pub top_log_probs: Vec<f32>,
}

/// The scores of a turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnScores {
    /// The scores of the prompt's tokens from the second; `None` if they were not wanted.
    pub prompt: Option<Arc<TokenScores>>,
    /// The scores of the sampled tokens; empty if they were not wanted.
    pub sampled: TokenScores,
}

impl WantedScores {
    /// Returns true if no score is wanted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl TokenScores {
    /// Returns the `most` most probable tokens in a place, with their log-probabilities.
    pub fn top(&self, place: usize, most: usize) -> impl Iterator<Item = (u32, f32)> {
        let entries = place * self.top..place * self.top + most.min(self.top);
        self.top_ids[entries.clone()].iter().copied().zip(self.top_log_probs[entries].iter().copied())
    }
}
