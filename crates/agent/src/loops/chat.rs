//! Reads the turns of a conversation with tools, and continues it.

use std::sync::Arc;

use anyhow::Result;
use serde_json::Value;

use super::super::calls::{CallFormat, ParsedTurn, parse};
use super::super::tokens::{Appended, Continuation};
use burnish_data::Tokenizer;

/// Parses a model's turns, and appends messages as tokens.
pub trait Chat: Send + Sync {
    /// Decodes ids without special tokens.
    ///
    /// # Errors
    /// Ids that cannot be decoded.
    fn plain_text(&self, ids: &[u32]) -> Result<String>;

    /// Finds the calls in a turn. The content has no special tokens, but includes calls that cannot be parsed. If no call can be
    /// parsed, it is the whole text.
    ///
    /// # Errors
    /// Ids that cannot be decoded.
    fn read(&self, ids: &[u32], tools: &[Value]) -> Result<ParsedTurn>;

    /// Returns the ids that `new` messages add, see [`Continuation::append`].
    ///
    /// # Errors
    /// Messages that cannot be appended, a template that fails.
    fn append(&self, history: &[Value], ids: &[u32], new: &[Value]) -> Result<Appended>;
}

/// A chat with a tokenizer's chat template and a tool-call format.
pub struct TemplateChat {
    pub tokenizer: Tokenizer,
    pub continuation: Arc<Continuation>,
    pub format: &'static CallFormat,
    /// True if calls inside `<think>…</think>` are ignored; verl runs them.
    pub ignore_in_thinking: bool,
}

impl Chat for TemplateChat {
    fn plain_text(&self, ids: &[u32]) -> Result<String> {
        self.tokenizer.decode(ids, true)
    }

    fn read(&self, ids: &[u32], tools: &[Value]) -> Result<ParsedTurn> {
        // Formats match the special tokens at the beginning and end of calls.
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
