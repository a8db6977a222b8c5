//! The reading of a query: its tokens, as many as the model takes.

use anyhow::{Result, ensure};

use super::request::Query;
use burnish_data::Tokenizer;
use burnish_reward_model::model::Input;
use burnish_reward_model::steps::Steps;

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
    /// The way in which a process reward model judges.
    steps: Option<Steps>,
}

impl Texts {
    pub fn new(tokenizer: Tokenizer, max_len: Option<usize>, positions: usize, steps: Option<Steps>) -> Self {
        let bytes = positions.saturating_mul(tokenizer.longest_token().max(LEAST));
        Self { tokenizer, max_len, positions, bytes, steps }
    }

    /// True if long queries are cut, and not refused.
    pub fn cuts(&self) -> bool {
        self.max_len.is_some()
    }

    /// Returns the tokens of a query. The steps of a process reward model are those after the query's prompt, where it has one.
    ///
    /// # Errors
    /// If there are none or too many. What is far too long is not tokenized: that takes a few hundred bytes for each of its own.
    pub fn read(&self, query: &Query) -> Result<Input> {
        let Self { positions, bytes, .. } = *self;
        let text = query.text.as_str();
        ensure!(
            text.len() <= bytes,
            "{} bytes, and the model reads at most {positions} tokens (max_position_embeddings), which is at most {bytes} bytes",
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
            return Input::of_steps(ids, at, self.max_len.unwrap_or(positions));
        }
        let mut ids = self.tokenizer.encode(text)?;
        let length = ids.len();
        ensure!(length > 0, "no tokens");
        let most = self.max_len.unwrap_or(length);
        ids.truncate(most);
        ensure!(
            ids.len() <= positions,
            "{length} tokens, and the model has max_position_embeddings {positions}; --max-len {positions} leaves out the end"
        );
        Ok(Input::whole(ids, length > most))
    }
}
