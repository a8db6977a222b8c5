//! Conversion of requests to prompt ids.

use std::sync::Arc;

use serde_json::Value;

use super::messages::for_template;
use super::options::Defaults;
use super::refused::Refused;
use super::request::{ChatRequest, PromptText};
use crate::tokens::Quoting;
use burnish_data::{TemplateVariables, Tokenizer};

/// The minimum for bytes per token: whitespace and words outside the vocabulary can be long.
const LEAST: usize = 32;

/// A prompt in tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct Prompt {
    pub ids: Vec<u32>,
    /// The messages that the chat template got; empty for text completions.
    pub messages: Vec<Value>,
}

/// Converts requests to tokens.
#[derive(Clone)]
pub struct Renderer {
    tokenizer: Tokenizer,
    /// Default variables of the chat template.
    variables: serde_json::Map<String, Value>,
    defaults: Defaults,
    /// Encodes special tokens in tool and user messages as text.
    quoting: Option<Arc<Quoting>>,
    /// The limit of text in bytes: longer texts always exceed the model's token limit.
    bytes: usize,
}

impl Renderer {
    pub fn new(tokenizer: Tokenizer, variables: serde_json::Map<String, Value>, defaults: Defaults) -> Self {
        let bytes = defaults.longest.saturating_mul(tokenizer.longest_token().max(LEAST));
        Self { tokenizer, variables, defaults, quoting: None, bytes }
    }

    /// Encodes special tokens as text: those in tool messages, and all after the assistant's first message.
    #[must_use]
    pub fn with_quoting(self, quoting: Option<Arc<Quoting>>) -> Self {
        Self { quoting, ..self }
    }

    /// Returns true if special tokens in tool and user messages are encoded as text.
    pub fn quotes(&self) -> bool {
        self.quoting.is_some()
    }

    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    pub fn defaults(&self) -> &Defaults {
        &self.defaults
    }

    /// Returns the chat-template variables of a request, including its tools.
    pub fn variables(&self, request: &ChatRequest) -> TemplateVariables {
        let mut variables = self.variables.clone();
        variables.extend(request.variables.clone());
        if !request.tools.is_empty() {
            variables.insert("tools".to_owned(), request.tools.clone().into());
        }
        TemplateVariables::from(&variables)
    }

    /// Returns the prompt of a conversation, rendered by the chat template.
    ///
    /// # Errors
    /// If the template rejects the conversation, or the prompt is far too long.
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

    /// Returns the prompt of a text, with the tokens that the tokenizer adds in front.
    ///
    /// # Errors
    /// If the text is far too long, has no tokens, or has unknown ids.
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
            let message =
                format!("the text has {} bytes; the model's limit is {longest} tokens, at most {bytes} bytes", text.len());
            return Err(Refused::too_long(field, message));
        }
        Ok(())
    }

    fn some(&self, field: &str, prompt: Prompt) -> Result<Prompt, Refused> {
        if prompt.ids.is_empty() { Err(Refused::field(field, format!("`{field}` has no tokens"))) } else { Ok(prompt) }
    }
}
