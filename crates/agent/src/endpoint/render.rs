//! Conversion of requests to prompt ids.

use std::sync::Arc;

use serde_json::Value;

use super::error::ApiError;
use super::messages::{content_bytes, for_template, keep_read_fields, text_bytes};
use super::options::RequestDefaults;
use super::request::{ChatRequest, CompletionPrompt};
use crate::tokens::SpecialTokenEscaper;
use burnish_data::{TemplateVariables, Tokenizer};

/// The minimum for bytes per token: whitespace and words outside the vocabulary can be long.
const LEAST: usize = 32;

/// A prompt in tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptTokens {
    pub ids: Vec<u32>,
    /// The messages that the chat template got; empty for text completions.
    pub messages: Vec<Value>,
}

/// Converts requests to tokens.
#[derive(Clone)]
pub struct PromptRenderer {
    tokenizer: Tokenizer,
    /// Default variables of the chat template.
    variables: serde_json::Map<String, Value>,
    defaults: RequestDefaults,
    /// Encodes special tokens in the text of others as text.
    escaper: Option<Arc<SpecialTokenEscaper>>,
    /// The limit of text in bytes: longer texts always exceed the model's token limit.
    bytes: usize,
}

impl PromptRenderer {
    pub fn new(tokenizer: Tokenizer, variables: serde_json::Map<String, Value>, defaults: RequestDefaults) -> Self {
        let bytes = defaults.longest.saturating_mul(tokenizer.longest_token().max(LEAST));
        Self { tokenizer, variables, defaults, escaper: None, bytes }
    }

    /// Encodes special tokens as text in the tools and in all messages except the assistant's. `None` leaves them special.
    #[must_use]
    pub fn with_escaper(self, escaper: Option<Arc<SpecialTokenEscaper>>) -> Self {
        Self { escaper, ..self }
    }

    /// Returns the escaper of special tokens, if they are encoded as text.
    pub(super) fn escaper(&self) -> Option<&Arc<SpecialTokenEscaper>> {
        self.escaper.as_ref()
    }

    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    pub fn defaults(&self) -> &RequestDefaults {
        &self.defaults
    }

    /// Returns the chat-template variables of a request, including its tools.
    pub fn variables(&self, request: &ChatRequest) -> TemplateVariables {
        let mut variables = self.variables.clone();
        variables.extend(request.variables.clone());
        if !request.tools.is_empty() {
            let mut tools = Value::from(request.tools.clone());
            if let Some(escaper) = &self.escaper {
                escaper.escape_texts(&mut tools);
            }
            variables.insert("tools".to_owned(), tools);
        }
        TemplateVariables::from(&variables)
    }

    /// Returns the prompt of a conversation, rendered by the chat template.
    ///
    /// # Errors
    /// If the template rejects the conversation, or the prompt is far too long.
    pub fn chat(&self, request: &ChatRequest) -> Result<PromptTokens, ApiError> {
        // The template would copy texts that are too long in any case.
        self.fits("messages", request.messages.iter().map(content_bytes).sum())?;
        self.fits("tools", request.tools.iter().map(text_bytes).sum())?;
        self.fits("chat_template_kwargs", request.variables.values().map(text_bytes).sum())?;
        let messages: Vec<Value> = request.messages.iter().map(for_template).collect();
        let escaper = self.escaper.as_deref();
        let escaped = escaper.and_then(|escaper| escaper.escape_conversation(&messages)).map(Value::from);
        let list = Value::from(messages);
        let text = self.tokenizer.apply_chat_template(escaped.as_ref().unwrap_or(&list), true, self.variables(request));
        let text = text.map_err(|error| ApiError::field("messages", format!("{error:#}")))?;
        self.fits("messages", text.len())?;
        let Value::Array(messages) = list else { return Err(ApiError::status(500, "the messages are not a list")) };
        let ids = escaper.map_or_else(|| self.tokenizer.encode(&text), |escaper| escaper.encode(&text));
        let ids = ids.map_err(|error| ApiError::field("messages", format!("{error:#}")))?;
        self.some("messages", PromptTokens { ids, messages })
    }

    /// Returns the prompt of a text, with the tokens that the tokenizer adds in front.
    ///
    /// # Errors
    /// If the text is far too long, has no tokens, or has unknown ids.
    pub fn text(&self, prompt: &CompletionPrompt) -> Result<PromptTokens, ApiError> {
        let ids = match prompt {
            CompletionPrompt::Text(text) => self.encoded(text, true)?,
            CompletionPrompt::Ids(ids) => {
                self.check_ids("prompt", ids)?;
                ids.clone()
            }
        };
        self.some("prompt", PromptTokens { ids, messages: Vec::new() })
    }

    /// Returns the ids of a text, with `begun` behind the tokens that the tokenizer adds in front.
    ///
    /// # Errors
    /// If the text is far too long.
    pub(super) fn encoded(&self, text: &str, begun: bool) -> Result<Vec<u32>, ApiError> {
        self.fits("prompt", text.len())?;
        let ids = if begun { self.tokenizer.encode_begun(text) } else { self.tokenizer.encode(text) };
        ids.map_err(|error| ApiError::field("prompt", format!("{error:#}")))
    }

    /// Checks that the ids of a field are in the model's vocabulary.
    pub(super) fn check_ids(&self, field: &str, ids: &[u32]) -> Result<(), ApiError> {
        let vocab = self.defaults.vocab;
        match ids.iter().find(|id| **id as usize >= vocab) {
            Some(id) => {
                Err(ApiError::field(field, format!("`{field}` has the token id {id}; ids of the model are below {vocab}")))
            }
            None => Ok(()),
        }
    }

    /// Removes from messages what neither identifies them nor is named by the template, for records.
    pub fn keep_read_fields(&self, messages: &mut [Value]) {
        keep_read_fields(messages, |name| self.tokenizer.template_has(name));
    }

    /// Checks the number of bytes of a text.
    fn fits(&self, field: &str, length: usize) -> Result<(), ApiError> {
        let Self { bytes, defaults: RequestDefaults { longest, .. }, .. } = self;
        if length > *bytes {
            let message = format!("the text has {length} bytes; the model's limit is {longest} tokens, at most {bytes} bytes");
            return Err(ApiError::too_long(field, message));
        }
        Ok(())
    }

    fn some(&self, field: &str, prompt: PromptTokens) -> Result<PromptTokens, ApiError> {
        if prompt.ids.is_empty() { Err(ApiError::field(field, format!("`{field}` has no tokens"))) } else { Ok(prompt) }
    }
}
