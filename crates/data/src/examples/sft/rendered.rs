//! A conversation whose turns are looked for, and its rendering as a whole in tokens.

use std::ops::Range;

use anyhow::Result;
use serde_json::Value;

use crate::template::variables::TemplateVariables;
use crate::tokens::tokenizer::Tokenizer;

/// A conversation as the template writes it, in tokens.
pub(super) struct RenderedConversation {
    pub text: String,
    pub ids: Vec<u32>,
    /// The bytes of `text` that each token stands for.
    pub bytes: Vec<Range<usize>>,
}

/// A conversation in which turns are looked for.
pub(super) struct TurnFinder<'a> {
    pub messages: &'a [Value],
    pub tokenizer: &'a Tokenizer,
    pub variables: &'a TemplateVariables,
    pub whole: RenderedConversation,
    /// True if the beginning of a thought that the generation prompt writes belongs to the turn.
    pub keeps_thoughts: bool,
}

impl RenderedConversation {
    pub fn of(text: String, tokenizer: &Tokenizer) -> Result<Self> {
        let (ids, bytes) = tokenizer.encode_with_bytes(&text)?;
        Ok(Self { text, ids, bytes })
    }

    /// Returns the tokens that have some of these bytes.
    pub fn tokens(&self, bytes: Range<usize>) -> Range<usize> {
        let first = self.bytes.partition_point(|token| token.end <= bytes.start);
        first..first + self.bytes[first..].partition_point(|token| token.start < bytes.end)
    }
}

impl TurnFinder<'_> {
    /// Renders messages as those of the conversation are rendered; `asks`: with a generation prompt.
    pub fn render(&self, messages: Vec<Value>, asks: bool) -> Result<String> {
        self.tokenizer.apply_chat_template(&messages.into(), asks, self.variables)
    }
}
