//! The reading of a query: its tokens, as many as the model takes.

use anyhow::{Result, ensure};

use crate::data::Tokenizer;

/// The least bytes per token that a text may have: whitespace and words that a tokenizer does not know can be long.
const LEAST: usize = 32;

/// Reads queries as tokens.
pub struct Texts {
    tokenizer: Tokenizer,
    /// The number of tokens at which a query is cut.
    max_len: Option<usize>,
    /// The number of positions that the model has.
    positions: usize,
    /// The largest number of bytes of a query that is tokenized: no text of more bytes has as few tokens as the model has positions.
    bytes: usize,
}

impl Texts {
    pub fn new(tokenizer: Tokenizer, max_len: Option<usize>, positions: usize) -> Self {
        let bytes = positions.saturating_mul(tokenizer.longest_token().max(LEAST));
        Self { tokenizer, max_len, positions, bytes }
    }

    /// True if long queries are cut, and not refused.
    pub fn cuts(&self) -> bool {
        self.max_len.is_some()
    }

    /// Returns the tokens of a query, and `true` if its end was cut off.
    ///
    /// # Errors
    /// If there are none or too many. What is far too long is not tokenized: that takes a few hundred bytes for each of its own.
    pub fn read(&self, text: &str) -> Result<(Vec<u32>, bool)> {
        let Self { positions, bytes, .. } = *self;
        ensure!(
            text.len() <= bytes,
            "{} bytes, and the model reads at most {positions} tokens (max_position_embeddings), which is at most {bytes} bytes",
            text.len()
        );
        let mut ids = self.tokenizer.encode(text)?;
        let length = ids.len();
        ensure!(length > 0, "no tokens");
        let most = self.max_len.unwrap_or(length);
        ids.truncate(most);
        ensure!(
            ids.len() <= positions,
            "{length} tokens, and the model has max_position_embeddings {positions}; --max-len {positions} leaves out the end"
        );
        Ok((ids, length > most))
    }
}
