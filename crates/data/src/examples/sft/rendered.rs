//! A rendered conversation in tokens, and the input for finding its turns.

use std::ops::Range;

use anyhow::Result;
use serde_json::Value;

use crate::template::variables::TemplateVariables;
use crate::tokens::tokenizer::Tokenizer;

/// A rendered conversation in tokens.
pub(super) struct RenderedConversation {
    pub text: String,
    pub ids: Vec<u32>,
    /// Byte range of each token in `text`.
    pub bytes: Vec<Range<usize>>,
}

/// A conversation for finding turns.
pub(super) struct TurnFinder<'a> {
    pub messages: &'a [Value],
    pub tokenizer: &'a Tokenizer,
    pub variables: &'a TemplateVariables,
    pub full: RenderedConversation,
    /// True if the beginning of a thought in the generation prompt belongs to the turn.
    pub(crate) keeps_thoughts: bool,
}

impl RenderedConversation {
    pub(super) fn encode(text: String, tokenizer: &Tokenizer) -> Result<Self> {
        let (ids, bytes) = tokenizer.encode_with_bytes(&text)?;
        Ok(Self { text, ids, bytes })
    }

    /// Returns the tokens that overlap this byte range.
    pub(super) fn tokens(&self, bytes: Range<usize>) -> Range<usize> {
        let first = self.bytes.partition_point(|token| token.end <= bytes.start);
        first..first + self.bytes[first..].partition_point(|token| token.start < bytes.end)
    }
}

impl TurnFinder<'_> {
    /// Renders messages with the conversation's variables. `asks`: adds a generation prompt.
    pub(super) fn render(&self, messages: Vec<Value>, asks: bool) -> Result<String> {
        self.tokenizer.apply_chat_template(&messages.into(), asks, self.variables)
    }
}
