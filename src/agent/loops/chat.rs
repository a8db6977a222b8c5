//! How a conversation with tools reads what a model wrote, and continues it.

use std::sync::Arc;

use anyhow::Result;
use serde_json::Value;

use super::super::calls::{Format, Parsed, parse};
use super::super::tokens::{Appended, Continuation};
use crate::data::Tokenizer;

/// Reads a model's turns, and continues its tokens.
pub trait Chat: Send + Sync {
    /// Returns the text of ids, with that of special tokens.
    ///
    /// # Errors
    /// Ids that cannot be decoded.
    fn text(&self, ids: &[u32]) -> Result<String>;

    /// Returns the text of ids without that of special tokens.
    ///
    /// # Errors
    /// Ids that cannot be decoded.
    fn plain_text(&self, ids: &[u32]) -> Result<String>;

    /// Finds the calls in the text of a turn.
    fn read(&self, text: &str, tools: &[Value]) -> Parsed;

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
    fn text(&self, ids: &[u32]) -> Result<String> {
        self.tokenizer.decode(ids, false)
    }

    fn plain_text(&self, ids: &[u32]) -> Result<String> {
        self.tokenizer.decode(ids, true)
    }

    fn read(&self, text: &str, tools: &[Value]) -> Parsed {
        parse(self.format, text, tools, self.ignore_in_thinking)
    }

    fn append(&self, history: &[Value], ids: &[u32], new: &[Value]) -> Result<Appended> {
        self.continuation.append(history, ids, new)
    }
}
