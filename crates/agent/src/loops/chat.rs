//! How a conversation with tools reads what a model wrote, and continues it.

use std::sync::Arc;

use anyhow::Result;
use serde_json::Value;

use super::super::calls::{Format, Parsed, parse};
use super::super::tokens::{Appended, Continuation};
use burnish_data::Tokenizer;

/// Reads a model's turns, and continues its tokens.
pub trait Chat: Send + Sync {
    /// Returns the text of ids without that of special tokens.
    ///
    /// # Errors
    /// Ids that cannot be decoded.
    fn plain_text(&self, ids: &[u32]) -> Result<String>;

    /// Finds the calls in a turn. The content has no special tokens, and calls that cannot be read; it is the whole text where none can.
    ///
    /// # Errors
    /// Ids that cannot be decoded.
    fn read(&self, ids: &[u32], tools: &[Value]) -> Result<Parsed>;

    /// The ids that `new` messages add, see [`Continuation::append`].
    ///
    /// # Errors
    /// Messages that cannot be appended, a template that fails.
    fn append(&self, history: &[Value], ids: &[u32], new: &[Value]) -> Result<Appended>;
}

/// A chat by a tokenizer's template and a format of calls.
pub struct TemplateChat {
    pub tokenizer: Tokenizer,
    pub continuation: Arc<Continuation>,
    pub format: &'static Format,
    /// Whether calls inside `<think>…</think>` are thinking; verl carries them out.
    pub ignore_in_thinking: bool,
}

impl Chat for TemplateChat {
    fn plain_text(&self, ids: &[u32]) -> Result<String> {
        self.tokenizer.decode(ids, true)
    }

    fn read(&self, ids: &[u32], tools: &[Value]) -> Result<Parsed> {
        // Formats know the special tokens that calls begin and end with.
        let mut parsed = parse(self.format, &self.tokenizer.decode(ids, false)?, tools, self.ignore_in_thinking);
        parsed.content = match parsed.calls.is_empty() {
            true => self.plain_text(ids)?,
            false => self.tokenizer.without_special(&(parsed.content + &parsed.left_out.concat())),
        };
        Ok(parsed)
    }

    fn append(&self, history: &[Value], ids: &[u32], new: &[Value]) -> Result<Appended> {
        self.continuation.append(history, ids, new)
    }
}
