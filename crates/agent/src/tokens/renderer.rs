//! Renders messages as ids behind a synthetic conversation.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};

use super::group::role;
use super::quoted::Quoting;
use super::synthetic::{Base, calls_for};
use burnish_data::{TemplateVariables, Tokenizer};

/// The number of synthetic conversations whose ids are kept. There is one for each set of names and ids of calls that are answered
/// together, and ids may never come again.
const MOST_KEPT: usize = 64;

/// Renders messages with the chat template of a tokenizer.
pub struct Renderer {
    tokenizer: Tokenizer,
    variables: TemplateVariables,
    quoting: Quoting,
    before_message: Base,
    before_tools: Base,
    /// The ids of synthetic conversations, by their messages.
    kept: Mutex<HashMap<String, Arc<[u32]>>>,
}

impl Renderer {
    /// For a tokenizer, with these variables of its template. `no_arguments` are the arguments of a call without any, in the form that
    /// the template takes.
    pub fn new(tokenizer: Tokenizer, variables: TemplateVariables, no_arguments: &Value) -> Result<Self> {
        let quoting = Quoting::new(&tokenizer)?;
        let (before_message, before_tools) = (Base::System, Base::System);
        let mut renderer = Self { tokenizer, variables, quoting, before_message, before_tools, kept: Mutex::default() };
        let user = json!({"role": "user", "content": "a"});
        let renders = |messages: Vec<Value>| renderer.ids(&messages, true).is_ok();
        let message =
            [Base::System, Base::User].into_iter().find(|base| renders([base.before_message(), vec![user.clone()]].concat()));
        let tool = json!({"role": "tool", "content": "a"});
        let calls = calls_for(std::slice::from_ref(&tool), no_arguments);
        let tools = [Base::System, Base::User]
            .into_iter()
            .find(|base| renders([base.before_tools(calls.clone()), vec![tool.clone()]].concat()));
        renderer.before_message = message.unwrap_or(Base::System);
        renderer.before_tools = tools.unwrap_or(Base::System);
        Ok(renderer)
    }

    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    pub fn quoting(&self) -> &Quoting {
        &self.quoting
    }

    /// The ids of answers of tools, behind a synthetic conversation with calls for them.
    pub fn tools(&self, answers: &[Value], no_arguments: &Value, opens: bool) -> Result<Vec<u32>> {
        self.behind_calls(calls_for(answers, no_arguments), answers, opens)
    }

    /// The ids of answers of tools, behind a synthetic conversation that ends with this message of calls.
    pub fn behind_calls(&self, calls: Value, answers: &[Value], opens: bool) -> Result<Vec<u32>> {
        self.difference(&self.before_tools.before_tools(calls), answers, opens)
    }

    /// The ids of other messages, behind a synthetic conversation.
    pub fn message(&self, messages: &[Value], opens: bool) -> Result<Vec<u32>> {
        self.difference(&self.before_message.before_message(), messages, opens)
    }

    /// The ids that open the model's turn behind a message, in a synthetic conversation.
    pub fn opening_behind(&self, message: &Value) -> Result<Vec<u32>> {
        let mut messages = self.before_message.before_message();
        messages.push(message.clone());
        self.opening_of(&messages)
    }

    /// The ids that open the model's turn behind a whole conversation.
    pub fn opening_of(&self, conversation: &[Value]) -> Result<Vec<u32>> {
        let mut ids = self.ids(conversation, true)?;
        let prefix = self.ids(conversation, false)?;
        ensure!(
            ids.starts_with(&prefix),
            "the chat template writes the conversation otherwise when a turn of the model is to follow, so that no tokens can be appended \
             to open it"
        );
        Ok(ids.split_off(prefix.len()))
    }

    /// The ids that a template adds to those of `base` for further messages.
    ///
    /// # Errors
    /// If the template fails, or writes `base` otherwise when these messages follow.
    pub fn difference(&self, base: &[Value], messages: &[Value], opens: bool) -> Result<Vec<u32>> {
        let prefix = self.base(base)?;
        let mut ids = self.ids(&[base, messages].concat(), opens)?;
        if !ids.starts_with(&prefix) {
            let role = messages.first().map_or("assistant", role);
            bail!(
                "the chat template writes what is before a message of the {role} otherwise when that message follows (it moves or changes \
                 earlier messages), so that no tokens can be appended for it"
            );
        }
        Ok(ids.split_off(prefix.len()))
    }

    /// The ids of a synthetic conversation, without the opening of a turn.
    fn base(&self, messages: &[Value]) -> Result<Arc<[u32]>> {
        let key = serde_json::to_string(messages)?;
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ids) = kept().get(&key) {
            return Ok(ids.clone());
        }
        let ids: Arc<[u32]> = self.ids(messages, false)?.into();
        let mut kept = kept();
        if kept.len() >= MOST_KEPT {
            kept.clear();
        }
        kept.insert(key, ids.clone());
        Ok(ids)
    }

    /// The ids of a conversation. Some templates fail without a user's message that is no tool's answer: then it is rendered behind an
    /// empty one, whose ids are cut off.
    pub fn ids(&self, messages: &[Value], opens: bool) -> Result<Vec<u32>> {
        let render = |messages: Vec<Value>, opens| self.tokenizer.apply_chat_template(&messages.into(), opens, &self.variables);
        let empty = || json!({"role": "user", "content": [{"type": "text", "text": ""}]});
        let behind = || {
            let prefix = self.quoting.encode(&render(vec![empty()], false)?)?;
            let mut ids = self.quoting.encode(&render([&[empty()], messages].concat(), opens)?)?;
            Ok::<_, anyhow::Error>(ids.split_off(prefix.len().min(ids.len())))
        };
        match render(messages.to_vec(), opens) {
            Ok(text) => self.quoting.encode(&text),
            // What the template says of the conversation itself tells more.
            Err(error) => behind().map_err(|_| error),
        }
    }
}
