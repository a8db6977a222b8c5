//! Reads the turns of TRL's loop, and continues it.

use std::sync::Arc;

use anyhow::{Result, anyhow};
use serde_json::Value;

use super::super::calls::CallFormat;
use super::super::calls::response::parse_response;
use super::super::tokens::{SpecialTokenEscaper, trl_suffix};
use burnish_data::{TemplateVariables, Tokenizer};

/// A parsed turn of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct TrlTurn {
    /// The message; `tool_calls` holds its calls, if it has any.
    pub message: Value,
    /// The number of texts that look like a call and cannot be parsed.
    pub unreadable: usize,
}

/// Parses a model's turns, and continues its tokens, as TRL 1.16 does.
pub trait TrlChat: Send + Sync {
    /// Parses a turn that follows the tokens `before`.
    ///
    /// # Errors
    /// Ids that cannot be decoded, or a tokenizer without a known response template.
    fn read(&self, before: &[u32], turn: &[u32], tools: &[Value]) -> Result<TrlTurn>;

    /// Returns the ids that these tool results add, up to the opening of the model's next turn.
    ///
    /// # Errors
    /// A template that fails.
    fn suffix(&self, answers: &[Value]) -> Result<Vec<u32>>;
}

/// A chat with a tokenizer's chat template and its response template.
pub struct ResponseTemplateChat {
    pub tokenizer: Tokenizer,
    /// The variables of the chat template, without tools.
    pub variables: TemplateVariables,
    /// The name of the response template.
    pub template: String,
    /// The tool-call format used to count calls that cannot be parsed: TRL takes a turn with one for plain text.
    pub format: Option<&'static CallFormat>,
    /// Encodes special tokens in tool results as text. `None` keeps them special, as in TRL.
    pub escaper: Option<Arc<SpecialTokenEscaper>>,
}

impl TrlChat for ResponseTemplateChat {
    fn read(&self, before: &[u32], turn: &[u32], tools: &[Value]) -> Result<TrlTurn> {
        let (before, text) = (self.tokenizer.decode(before, false)?, self.tokenizer.decode(turn, false)?);
        let message = parse_response(&self.template, &before, &text, tools).map_err(|error| anyhow!(error))?;
        let is_read = message["tool_calls"].as_array().is_some_and(|calls| !calls.is_empty());
        let format = self.format.filter(|_| !is_read);
        let unreadable = format.map_or(0, |format| {
            let parsed = (format.parse)(&text, tools);
            parsed.unreadable + parsed.calls.len()
        });
        Ok(TrlTurn { message, unreadable })
    }

    fn suffix(&self, answers: &[Value]) -> Result<Vec<u32>> {
        trl_suffix(&self.tokenizer, &self.variables, answers, self.escaper.as_deref())
    }
}
