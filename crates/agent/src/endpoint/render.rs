//! From requests to the ids of their prompts.

use std::sync::Arc;

use serde_json::Value;

use super::messages::for_template;
use super::options::Defaults;
use super::refused::Refused;
use super::request::{ChatRequest, PromptText};
use crate::tokens::Quoting;
use burnish_data::{TemplateVariables, Tokenizer};

/// The least bytes per token that a text may have: whitespace and words that a tokenizer does not know can be long.
const LEAST: usize = 32;

/// A prompt in tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct Prompt {
    pub ids: Vec<u32>,
    /// The messages as the chat template got them; none of a text.
    pub messages: Vec<Value>,
}

/// Turns requests into tokens.
#[derive(Clone)]
pub struct Renderer {
    tokenizer: Tokenizer,
    /// Variables of the chat template that every request has, unless it has its own.
    variables: serde_json::Map<String, Value>,
    defaults: Defaults,
    /// Makes the control tokens that tools and users write text.
    quoting: Option<Arc<Quoting>>,
    /// The largest number of bytes that are tokenized: no text of more has as few tokens as the model reads.
    bytes: usize,
}

impl Renderer {
    pub fn new(tokenizer: Tokenizer, variables: serde_json::Map<String, Value>, defaults: Defaults) -> Self {
        let bytes = defaults.longest.saturating_mul(tokenizer.longest_token().max(LEAST));
        Self { tokenizer, variables, defaults, quoting: None, bytes }
    }

    /// Makes the control tokens that tools and users write text: those of tools, and behind the assistant's first message all.
    #[must_use]
    pub fn with_quoting(self, quoting: Option<Arc<Quoting>>) -> Self {
        Self { quoting, ..self }
    }

    /// True if the control tokens that tools and users write are text.
    pub fn quotes(&self) -> bool {
        self.quoting.is_some()
    }

    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    pub fn defaults(&self) -> &Defaults {
        &self.defaults
    }

    /// The variables of the chat template for a request, its tools among them.
    pub fn variables(&self, request: &ChatRequest) -> TemplateVariables {
        let mut variables = self.variables.clone();
        variables.extend(request.variables.clone());
        if !request.tools.is_empty() {
            variables.insert("tools".to_owned(), request.tools.clone().into());
        }
        TemplateVariables::from(&variables)
    }

    /// The prompt of a conversation, as the chat template writes it.
    ///
    /// # Errors
    /// If the template refuses the conversation, or the prompt is far too long.
    pub fn chat(&self, request: &ChatRequest) -> Result<Prompt, Refused> {
        let messages: Vec<Value> = request.messages.iter().map(for_template).collect();
        let quoting = self.quoting.as_deref();
        let list = Value::from(quoting.map_or_else(|| messages.clone(), |quoting| quoting.quoted_conversation(&messages)));
        let text = self.tokenizer.apply_chat_template(&list, true, self.variables(request));
        let text = text.map_err(|error| Refused::field("messages", format!("{error:#}")))?;
        self.fits("messages", &text)?;
        let ids = quoting.map_or_else(|| self.tokenizer.encode(&text), |quoting| quoting.encode(&text));
        let ids = ids.map_err(|error| Refused::field("messages", format!("{error:#}")))?;
        self.some("messages", Prompt { ids, messages })
    }

    /// The prompt of a text, with the tokens that the tokenizer puts before one.
    ///
    /// # Errors
    /// If it is far too long, has no tokens, or has ids that the model does not know.
    pub fn text(&self, prompt: &PromptText) -> Result<Prompt, Refused> {
        let ids = match prompt {
            PromptText::Text(text) => {
                self.fits("prompt", text)?;
                self.tokenizer.encode_begun(text).map_err(|error| Refused::field("prompt", format!("{error:#}")))?
            }
            PromptText::Ids(ids) => {
                let vocab = self.defaults.vocab;
                if let Some(id) = ids.iter().find(|id| **id as usize >= vocab) {
                    return Err(Refused::field(
                        "prompt",
                        format!("`prompt` has the token id {id}; ids of the model are below {vocab}"),
                    ));
                }
                ids.clone()
            }
        };
        self.some("prompt", Prompt { ids, messages: Vec::new() })
    }

    fn fits(&self, field: &str, text: &str) -> Result<(), Refused> {
        let Self { bytes, defaults: Defaults { longest, .. }, .. } = self;
        if text.len() > *bytes {
            let message = format!("{} bytes of text, and the model reads {longest} tokens, at most {bytes} bytes", text.len());
            return Err(Refused::too_long(field, message));
        }
        Ok(())
    }

    fn some(&self, field: &str, prompt: Prompt) -> Result<Prompt, Refused> {
        if prompt.ids.is_empty() { Err(Refused::field(field, format!("`{field}` has no tokens"))) } else { Ok(prompt) }
    }
}
