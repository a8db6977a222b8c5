//! The tokenization of a query, within the model's positions.

use anyhow::{Result, ensure};

use super::request::Query;
use burnish_data::Tokenizer;
use burnish_reward_model::model::Input;
use burnish_reward_model::steps::StepScorer;

/// A bound of the bytes per token: whitespace and unknown words can be long tokens.
const LEAST: usize = 32;

/// Tokenizes queries.
pub(super) struct Texts {
    tokenizer: Tokenizer,
    /// The number of tokens at which a query is truncated.
    max_len: Option<usize>,
    /// The number of positions of the model.
    positions: usize,
    /// The maximum bytes of a query that is tokenized; a longer text always has more tokens than the model has positions.
    bytes: usize,
    /// The judging by a process reward model.
    steps: Option<StepScorer>,
}

impl Texts {
    pub(super) fn new(tokenizer: Tokenizer, max_len: Option<usize>, positions: usize, steps: Option<StepScorer>) -> Self {
        let bytes = positions.saturating_mul(tokenizer.longest_token().max(LEAST));
        Self { tokenizer, max_len, positions, bytes, steps }
    }

    /// Returns true if long queries are truncated and not refused.
    pub(super) fn cuts(&self) -> bool {
        self.max_len.is_some()
    }

    /// Returns the tokens of a query. A process reward model judges the steps after the query's prompt, if it has one.
    ///
    /// # Errors
    /// If there are no tokens or too many. A far too long query is not tokenized, because tokenizing takes a few hundred times
    /// its memory.
    pub(super) fn read(&self, query: &Query) -> Result<Input> {
        let Self { positions, bytes, .. } = *self;
        let text = query.text.as_str();
        ensure!(
            text.len() <= bytes,
            "{} bytes, and the model reads at most {positions} tokens (max_position_embeddings), that is, at most {bytes} bytes",
            text.len()
        );
        if let Some(steps) = &self.steps {
            let prompt = query.prompt.as_deref().filter(|prompt| text.starts_with(prompt)).unwrap_or_default();
            let (ids, at) = steps.read(prompt, &text[prompt.len()..])?;
            ensure!(
                self.max_len.is_some() || ids.len() <= positions,
                "{} tokens, and the model has max_position_embeddings {positions}; --max-len {positions} leaves out the end",
                ids.len()
            );
            return Input::with_steps(ids, at, self.max_len.unwrap_or(positions));
        }
        let mut ids = self.tokenizer.encode(text)?;
        let length = ids.len();
        ensure!(length > 0, "no tokens");
        let max = self.max_len.unwrap_or(length);
        ids.truncate(max);
        ensure!(
            ids.len() <= positions,
            "{length} tokens, and the model has max_position_embeddings {positions}; --max-len {positions} leaves out the end"
        );
        Ok(Input::at_last_token(ids, length > max))
    }
}
