//! Requests of custom loops to the tokenizer and the chat template, from their process.
//!
//! A request is an object with `op` and its arguments:
//!
//! | `op` | Arguments | Reply |
//! |---|---|---|
//! | `render` | `messages`, `tools`, `variables`, `add_generation_prompt`, `tokenize` | the ids of a conversation, or its text |
//! | `encode` | `text`, `add_special_tokens` | ids |
//! | `decode` | `ids`, `skip_special_tokens` | a text |
//! | `token_ids` | `tokens`, in the vocabulary's spelling | for each its id, or null |
//! | `append` | `history`, `new`, `ids`, `tools`, `variables` | `removed`, `added`: see [`Continuation::append`] |
//! | `calls` | `ids`, `tools`, `format` | `content`, `calls` of `name`, `arguments` and `id` |

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

use super::super::calls::{CallFormat, FORMATS, format_named, parse};
use super::super::tokens::{Continuation, SpecialTokenEscaper};
use burnish_data::{TemplateVariables, Tokenizer, completes_stop};
use burnish_rollout::TurnStops;

/// The limit of cached continuations: one for each set of tools and variables.
const MAX_KEPT: usize = 64;

/// Handles tokenizer requests of a loop.
pub trait TokenService: Send + Sync {
    /// Handles a request.
    ///
    /// # Errors
    /// A request that cannot be handled, in words for the calling code.
    fn answer(&self, request: &Value) -> Result<Value>;

    /// Decodes ids, including special tokens.
    ///
    /// # Errors
    /// Ids that cannot be decoded.
    fn text(&self, ids: &[u32]) -> Result<String>;

    /// Decodes ids without special tokens.
    ///
    /// # Errors
    /// Ids that cannot be decoded.
    fn plain_text(&self, ids: &[u32]) -> Result<String>;

    /// Returns the size of the vocabulary.
    fn vocabulary(&self) -> usize;

    /// Returns a condition that stops at these ids or after these texts; `None` without any.
    fn stops(&self, ids: Vec<u32>, texts: Vec<String>) -> Option<TurnStops>;
}

/// A tokenizer with its chat template.
pub struct TemplateTokenService {
    pub tokenizer: Tokenizer,
    pub model_type: String,
    /// The tool-call format that `auto` selects.
    pub format: &'static CallFormat,
    /// True if calls inside `<think>…</think>` are ignored; verl runs them.
    pub ignore_in_thinking: bool,
    /// Encodes special tokens in appended messages, and in tool messages, as text. `None` keeps them special, as in verl.
    pub escaper: Option<Arc<SpecialTokenEscaper>>,
    /// Cached continuations, by tools and variables.
    pub continuations: Mutex<HashMap<String, Arc<Continuation>>>,
}

impl TemplateTokenService {
    /// Returns the attributes of a transformers tokenizer. The padding token is the end-of-sequence token, as in verl for
    /// tokenizers without one.
    ///
    /// # Errors
    /// An end-of-sequence token that cannot be decoded.
    pub fn about(&self) -> Result<Value> {
        let id = self.tokenizer.eos_id();
        let text = self.tokenizer.decode(&[id], false)?;
        Ok(json!({
            "eos_token_id": id,
            "eos_token": text,
            "pad_token_id": id,
            "pad_token": text,
            "vocab_size": self.tokenizer.vocab_size(),
        }))
    }

    /// Returns the continuation of conversations with these tools and variables.
    fn continuation(&self, request: &Value) -> Result<Arc<Continuation>> {
        let key = json!([request["tools"], request["variables"]]).to_string();
        let mut cache = self.continuations.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(continuation) = cache.get(&key) {
            return Ok(continuation.clone());
        }
        let continuation = Continuation::new(self.tokenizer.clone(), &self.model_type, variables(request))?;
        let continuation = Arc::new(continuation.with_literal_special_tokens(self.escaper.is_some()));
        if cache.len() >= MAX_KEPT {
            cache.clear();
        }
        cache.insert(key, continuation.clone());
        Ok(continuation)
    }

    fn calls(&self, request: &Value) -> Result<Value> {
        let name = text(request, "format")?;
        let format = if name == "auto" { Some(self.format) } else { format_named(name) };
        let format = format.with_context(|| {
            let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
            format!("unknown tool-call format {name:?}; the formats are {}", names.join(", "))
        })?;
        let written = self.tokenizer.decode(&ids(request)?, false)?;
        let parsed = parse(format, &written, list(request, "tools"), self.ignore_in_thinking);
        let calls = parsed.calls.iter().map(|call| json!({"name": call.name, "arguments": call.arguments, "id": call.id}));
        Ok(json!({ "content": parsed.content, "calls": calls.collect::<Vec<_>>() }))
    }
}

impl TokenService for TemplateTokenService {
    fn answer(&self, request: &Value) -> Result<Value> {
        let is = |name: &str| request[name].as_bool().unwrap_or_default();
        Ok(match text(request, "op")? {
            "render" => {
                // Special tokens can be told apart in ids, but not in a returned text.
                let escaper = self.escaper.as_deref().filter(|_| is("tokenize"));
                let is_tool = |message: &Value| message["role"] == "tool";
                let escaped = escaper.map(|escaper| escaper.escape_where(list(request, "messages"), is_tool).into());
                let messages = escaped.as_ref().unwrap_or(&request["messages"]);
                let rendered = self.tokenizer.apply_chat_template(messages, is("add_generation_prompt"), variables(request))?;
                match escaper {
                    Some(escaper) => escaper.encode(&rendered)?.into(),
                    None if is("tokenize") => self.tokenizer.encode(&rendered)?.into(),
                    None => rendered.into(),
                }
            }
            "encode" if is("add_special_tokens") => self.tokenizer.encode_plain(text(request, "text")?)?.into(),
            "encode" => self.tokenizer.encode(text(request, "text")?)?.into(),
            "decode" => self.tokenizer.decode(&ids(request)?, is("skip_special_tokens"))?.into(),
            "token_ids" => {
                let tokens = list(request, "tokens").iter().map(|token| self.tokenizer.token_id(token.as_str()?));
                tokens.collect::<Vec<Option<u32>>>().into()
            }
            "append" => {
                let (history, new) = (list(request, "history"), list(request, "new"));
                let appended = self.continuation(request)?.append(history, &ids(request)?, new)?;
                json!({ "removed": appended.remove, "added": appended.ids })
            }
            "calls" => self.calls(request)?,
            other => bail!("the tokenizer does not support the operation {other:?}"),
        })
    }

    fn text(&self, ids: &[u32]) -> Result<String> {
        self.tokenizer.decode(ids, false)
    }

    fn plain_text(&self, ids: &[u32]) -> Result<String> {
        self.tokenizer.decode(ids, true)
    }

    fn vocabulary(&self) -> usize {
        self.tokenizer.vocab_size()
    }

    fn stops(&self, ids: Vec<u32>, texts: Vec<String>) -> Option<TurnStops> {
        if ids.is_empty() && texts.is_empty() {
            return None;
        }
        let tokenizer = self.tokenizer.clone();
        Some(Arc::new(move |turn: &[u32]| {
            let at_id = turn.last().is_some_and(|last| ids.contains(last));
            at_id || !texts.is_empty() && completes_stop(&tokenizer, &texts, turn, false)
        }))
    }
}

/// Returns the chat-template variables of a request, including its tools.
fn variables(request: &Value) -> TemplateVariables {
    let mut variables: Map<String, Value> = request["variables"].as_object().cloned().unwrap_or_default();
    if !list(request, "tools").is_empty() {
        variables.insert("tools".to_owned(), request["tools"].clone());
    }
    TemplateVariables::from(&variables)
}

fn text<'a>(request: &'a Value, name: &str) -> Result<&'a str> {
    request[name].as_str().with_context(|| format!("`{name}` must be a text, not {}", request[name]))
}

fn list<'a>(request: &'a Value, name: &str) -> &'a [Value] {
    request[name].as_array().map_or(&[], Vec::as_slice)
}

fn ids(request: &Value) -> Result<Vec<u32>> {
    let id = |id: &Value| id.as_u64().and_then(|id| u32::try_from(id).ok()).with_context(|| format!("{id} is not a token id"));
    list(request, "ids").iter().map(id).collect()
}
