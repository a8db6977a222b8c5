//! Renders messages as ids, after a synthetic conversation.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};

use super::escape::SpecialTokenEscaper;
use super::group::role;
use super::synthetic::{SyntheticStart, calls_for};
use burnish_data::{TemplateVariables, Tokenizer};

/// The limit of cached synthetic conversations. There is one for each set of call names and ids that are rendered together, and
/// ids may never repeat.
const MAX_KEPT: usize = 64;
/// The limit in bytes of the messages of a cached synthetic conversation.
const LARGEST_KEPT: usize = 4096;

/// Renders messages with the chat template of a tokenizer.
pub struct Renderer {
    tokenizer: Tokenizer,
    variables: TemplateVariables,
    escaper: Arc<SpecialTokenEscaper>,
    before_message: SyntheticStart,
    before_tools: SyntheticStart,
    /// Cached ids of synthetic conversations, by their messages.
    cache: Mutex<HashMap<String, Arc<[u32]>>>,
}

impl Renderer {
    /// Creates a renderer with these template variables. `no_arguments` are the arguments of a call without any, in the form that
    /// the template takes.
    /// Renderers of one tokenizer share the `escaper`, which may take the memory of a vocabulary.
    pub fn new(
        tokenizer: Tokenizer,
        variables: TemplateVariables,
        no_arguments: &Value,
        escaper: Arc<SpecialTokenEscaper>,
    ) -> Result<Self> {
        let (before_message, before_tools) = (SyntheticStart::System, SyntheticStart::System);
        let mut renderer = Self { tokenizer, variables, escaper, before_message, before_tools, cache: Mutex::default() };
        let user = json!({"role": "user", "content": "a"});
        let renders = |messages: Vec<Value>| renderer.ids(&messages, true).is_ok();
        let message = [SyntheticStart::System, SyntheticStart::User]
            .into_iter()
            .find(|base| renders([base.before_message(), vec![user.clone()]].concat()));
        let tool = json!({"role": "tool", "content": "a"});
        let calls = calls_for(std::slice::from_ref(&tool), no_arguments);
        let tools = [SyntheticStart::System, SyntheticStart::User]
            .into_iter()
            .find(|base| renders([base.before_tools(calls.clone()), vec![tool.clone()]].concat()));
        renderer.before_message = message.unwrap_or(SyntheticStart::System);
        renderer.before_tools = tools.unwrap_or(SyntheticStart::System);
        Ok(renderer)
    }

    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    pub fn escaper(&self) -> &SpecialTokenEscaper {
        &self.escaper
    }

    /// Returns the ids of tool results, rendered after a synthetic conversation with calls for them.
    pub fn tools(&self, answers: &[Value], no_arguments: &Value, opens: bool) -> Result<Vec<u32>> {
        self.after_calls(calls_for(answers, no_arguments), answers, opens)
    }

    /// Returns the ids of tool results, rendered after a synthetic conversation that ends with this message of calls.
    pub(crate) fn after_calls(&self, calls: Value, answers: &[Value], opens: bool) -> Result<Vec<u32>> {
        self.difference(&self.before_tools.before_tools(calls), answers, opens)
    }

    /// Returns the ids of other messages, rendered after a synthetic conversation.
    pub fn message(&self, messages: &[Value], opens: bool) -> Result<Vec<u32>> {
        self.difference(&self.before_message.before_message(), messages, opens)
    }

    /// Returns the ids that open the model's turn after a message, in a synthetic conversation.
    pub(crate) fn opening_after(&self, message: &Value) -> Result<Vec<u32>> {
        let mut messages = self.before_message.before_message();
        messages.push(message.clone());
        self.opening_of(&messages)
    }

    /// Returns the ids that open the model's turn after a whole conversation.
    pub(crate) fn opening_of(&self, conversation: &[Value]) -> Result<Vec<u32>> {
        let mut ids = self.ids(conversation, true)?;
        let prefix = self.ids(conversation, false)?;
        ensure!(
            ids.starts_with(&prefix),
            "the chat template changes the conversation if a turn of the model is to follow, so no tokens can be appended \
             to open it"
        );
        Ok(ids.split_off(prefix.len()))
    }

    /// Returns the ids that a template adds to the ids of `base` for further messages.
    ///
    /// # Errors
    /// If the template fails, or changes `base` if these messages follow.
    pub fn difference(&self, base: &[Value], messages: &[Value], opens: bool) -> Result<Vec<u32>> {
        let prefix = self.base(base)?;
        let mut ids = self.ids(&[base, messages].concat(), opens)?;
        if !ids.starts_with(&prefix) {
            let role = messages.first().map_or("assistant", role);
            bail!(
                "the chat template changes the text before a message of the {role} if that message follows (it moves or changes \
                 earlier messages), so no tokens can be appended for it"
            );
        }
        Ok(ids.split_off(prefix.len()))
    }

    /// Returns the ids of a synthetic conversation, without the opening of a turn.
    fn base(&self, messages: &[Value]) -> Result<Arc<[u32]>> {
        let key = serde_json::to_string(messages)?;
        let cache = || self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ids) = cache().get(&key) {
            return Ok(ids.clone());
        }
        let ids: Arc<[u32]> = self.ids(messages, false)?.into();
        if key.len() > LARGEST_KEPT {
            return Ok(ids);
        }
        let mut cache = cache();
        if cache.len() >= MAX_KEPT {
            cache.clear();
        }
        cache.insert(key, ids.clone());
        Ok(ids)
    }

    /// Returns the ids of a conversation. Some templates fail without a user's message other than a tool result: then an empty
    /// one is rendered first, and its ids are cut off.
    pub fn ids(&self, messages: &[Value], opens: bool) -> Result<Vec<u32>> {
        let render = |messages: Vec<Value>, opens| self.tokenizer.apply_chat_template(&messages.into(), opens, &self.variables);
        let empty = || json!({"role": "user", "content": [{"type": "text", "text": ""}]});
        let behind = || {
            let prefix = self.escaper.encode(&render(vec![empty()], false)?)?;
            let mut ids = self.escaper.encode(&render([&[empty()], messages].concat(), opens)?)?;
            Ok::<_, anyhow::Error>(ids.split_off(prefix.len().min(ids.len())))
        };
        match render(messages.to_vec(), opens) {
            Ok(text) => self.escaper.encode(&text),
            // The template's error for the conversation itself is more helpful.
            Err(error) => behind().map_err(|_| error),
        }
    }
}
