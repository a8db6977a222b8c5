//! How TRL's loop reads what a model wrote, and continues it.

use std::sync::Arc;

use anyhow::{Result, anyhow};
use serde_json::Value;

use super::super::calls::Format;
use super::super::calls::response::parse_response;
use super::super::tokens::{Quoting, trl_suffix};
use burnish_data::{TemplateVariables, Tokenizer};

/// A turn of the model, read.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// The message; `tool_calls` holds its calls, if it has any.
    pub message: Value,
    /// The number of texts that look like a call and cannot be read.
    pub unreadable: usize,
}

/// Reads a model's turns, and continues its tokens, as TRL 1.16 does.
pub trait TrlChat: Send + Sync {
    /// Reads a turn that follows the tokens `before`.
    ///
    /// # Errors
    /// Ids that cannot be decoded, a tokenizer whose turns cannot be read.
    fn read(&self, before: &[u32], turn: &[u32], tools: &[Value]) -> Result<Said>;

    /// The ids that these answers of tools add, up to the opening of the model's next turn.
    ///
    /// # Errors
    /// A template that fails.
    fn suffix(&self, answers: &[Value]) -> Result<Vec<u32>>;
}

/// A chat by a tokenizer's template and the response template that belongs to it.
pub struct ResponseTemplateChat {
    pub tokenizer: Tokenizer,
    /// The variables of the chat template, without tools.
    pub variables: TemplateVariables,
    /// The name of the response template.
    pub template: String,
    /// The format of calls by which those are counted that cannot be read: TRL takes a turn with one for plain text.
    pub format: Option<&'static Format>,
    /// Makes control tokens in the answers of tools text; without it they are control tokens, as in TRL.
    pub quoting: Option<Arc<Quoting>>,
}

impl TrlChat for ResponseTemplateChat {
    fn read(&self, before: &[u32], turn: &[u32], tools: &[Value]) -> Result<Said> {
        let (before, text) = (self.tokenizer.decode(before, false)?, self.tokenizer.decode(turn, false)?);
        let message = parse_response(&self.template, &before, &text, tools).map_err(|error| anyhow!(error))?;
        let is_read = message["tool_calls"].as_array().is_some_and(|calls| !calls.is_empty());
        let format = self.format.filter(|_| !is_read);
        let unreadable = format.map_or(0, |format| {
            let parsed = (format.parse)(&text, tools);
            parsed.unreadable + parsed.calls.len()
        });
        Ok(Said { message, unreadable })
    }

    fn suffix(&self, answers: &[Value]) -> Result<Vec<u32>> {
        trl_suffix(&self.tokenizer, &self.variables, answers, self.quoting.as_deref())
    }
}
