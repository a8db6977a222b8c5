//! Refuses conversations whose texts a chat template leaves out. Many templates have a branch per known role and write nothing
//! for a message with another role: `human`, `function_call`, a second system message.
//!
//! A template may strip, trim and escape text, or leave out thoughts. So each text is replaced by a unique word, and these words
//! are searched in the rendering. This is done once per shape of a conversation.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use anyhow::{Result, bail};
use serde_json::{Map, Value};

use super::roles::{call_as_assistant, is_call, known_role, known_roles};
use super::shapes::ShapeVerdict;
use super::variables::TemplateVariables;
use crate::tokens::tokenizer::Tokenizer;

/// Message fields with a loss weight: OpenAI's `weight`, LLaMA-Factory's and Mistral's `train`, slime's and ms-swift's `loss`,
/// and verl users' `loss_mask` and `mask`. Supervised training removes them before a template sees the message.
pub(crate) const WEIGHTS: &[&str] = &["weight", "train", "loss", "loss_mask", "mask"];

/// Field names of reasoning in templates and data sets.
const THOUGHTS: &[&str] = &["reasoning_content", "reasoning", "thinking"];

/// Fields of OpenAI's messages, which need no warning if a template ignores them.
const USUAL: &[&str] =
    &["role", "content", "tool_calls", "tool_call_id", "name", "id", "type", "refusal", "annotations", "audio"];

/// Returns the messages with roles that the template writes. A role that the template ignores is replaced by the standard role of
/// that meaning (`human` by `user`), with one warning. `asks`: the conversation is a prompt.
///
/// # Errors
/// A message with a text or call that the template leaves out.
pub(crate) fn fit_to_template(
    mut messages: Vec<Value>,
    asks: bool,
    tokenizer: &Tokenizer,
    variables: &TemplateVariables,
) -> Result<Vec<Value>> {
    let template = Template { asks, tokenizer, variables };
    if messages.iter().any(is_call) {
        // The call becomes `tool_calls` if the template writes them, else text.
        let as_call = tokenizer.template_has("tool_calls");
        let mut called = messages.clone();
        called.iter_mut().for_each(|message| call_as_assistant(message, as_call));
        if as_call && matches!(*template.verdict(&called), ShapeVerdict::Lost(_)) {
            called = messages;
            called.iter_mut().for_each(|message| call_as_assistant(message, false));
        }
        messages = called;
    }
    match &*template.verdict(&messages) {
        ShapeVerdict::Lost(error) => bail!("{error}"),
        ShapeVerdict::Written(renamed) => {
            renamed.iter().for_each(|(from, to)| rename(&mut messages, from, to));
            Ok(messages)
        }
    }
}

/// Returns a hash of everything that decides which texts are written, except the texts themselves.
fn shape(messages: &[Value], template: &Template) -> u64 {
    let mut hasher = DefaultHasher::new();
    (template.asks, template.variables.has_tools()).hash(&mut hasher);
    for message in messages {
        message.get("role").and_then(Value::as_str).hash(&mut hasher);
        let Some(fields) = message.as_object() else { continue };
        for (name, value) in fields.iter().filter(|(_, value)| is_set(value)) {
            name.hash(&mut hasher);
            match value {
                Value::Array(items) => items.iter().for_each(|item| kind(item).hash(&mut hasher)),
                other => kind(other).hash(&mut hasher),
            }
        }
        u8::MAX.hash(&mut hasher);
    }
    hasher.finish()
}

fn kind(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(text) => 3 + u8::from(text.trim().is_empty()),
        Value::Array(_) => 5,
        Value::Object(fields) => {
            6 + u8::from(fields.get("text").and_then(Value::as_str).is_some_and(|text| text.trim().is_empty()))
        }
    }
}

fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    }
}

fn rename(messages: &mut [Value], from: &str, to: &str) {
    messages.iter_mut().filter(|message| message["role"] == from).for_each(|message| message["role"] = to.into());
}

/// A chat template with its inputs.
struct Template<'a> {
    asks: bool,
    tokenizer: &'a Tokenizer,
    variables: &'a TemplateVariables,
}

/// The part of a message that a mark replaces.
#[derive(Clone, Copy, PartialEq)]
enum MarkedPart {
    Text,
    Call,
}

impl Template<'_> {
    fn verdict(&self, messages: &[Value]) -> Arc<ShapeVerdict> {
        self.tokenizer.shapes().verdict(shape(messages, self), || self.judge(messages))
    }

    fn judge(&self, messages: &[Value]) -> ShapeVerdict {
        self.name_unread(messages);
        let (mut messages, mut renamed) = (messages.to_vec(), Vec::<(String, &str)>::new());
        loop {
            let lost = self.lost(&messages);
            // A template may refuse a conversation because of a role.
            let suspects = match &lost {
                Some(None) => {
                    renamed.iter().for_each(|(from, to)| self.warn_renamed(from, to));
                    return ShapeVerdict::Written(renamed);
                }
                Some(Some((i, _))) => &messages[*i..=*i],
                None => &messages[..],
            };
            let roles = suspects.iter().filter_map(|message| message.get("role")?.as_str());
            let other = roles.filter_map(|role| Some((role.to_owned(), known_role(role)?))).next();
            match (other, lost.flatten()) {
                (Some((from, to)), _) => {
                    rename(&mut messages, &from, to);
                    renamed.push((from, to));
                }
                (None, Some((i, part))) => return ShapeVerdict::Lost(self.error(&messages, i, part)),
                // The template's own error follows later.
                (None, None) => return ShapeVerdict::Written(Vec::new()),
            }
        }
    }

    fn warn_renamed(&self, from: &str, to: &str) {
        self.tokenizer.shapes().warn_once(format!(
            "messages with the role \"{from}\" get the role \"{to}\": the chat template does not know \"{from}\""
        ));
    }

    /// Returns the first message with a part that is not written, if any; `None` if the template refuses the conversation.
    fn lost(&self, messages: &[Value]) -> Option<Option<(usize, MarkedPart)>> {
        let (marked, marks) = marked(messages);
        let text = self.tokenizer.apply_chat_template(&marked.into(), self.asks, self.variables).ok()?.to_lowercase();
        // Templates write marks in their order: each is looked for behind the last one, which is linear in their number.
        let mut behind = 0;
        let mut is_lost = |mark: &str| match text[behind..].find(mark) {
            Some(at) => {
                behind += at + mark.len();
                false
            }
            None => !text.contains(mark),
        };
        let mut lost = marks.into_iter().filter(|(_, _, mark)| is_lost(mark)).map(|(i, part, _)| (i, part)).peekable();
        while let Some((i, part)) = lost.next() {
            let calls_too = lost.peek().is_some_and(|(other, part)| *other == i && *part == MarkedPart::Call);
            if part == MarkedPart::Call || calls_too || !messages[i].get("tool_calls").is_some_and(is_set) {
                return Some(Some((i, part)));
            }
            // Some templates treat the text of a turn with calls as thoughts, which they leave out.
            self.tokenizer.shapes().warn_once(
                "messages of the assistant have text next to their calls, but the chat template only writes the calls: the model \
                 does not see the text"
                    .to_owned(),
            );
        }
        Some(None)
    }

    fn error(&self, messages: &[Value], i: usize, part: MarkedPart) -> String {
        let role = messages[i]["role"].as_str().unwrap_or_default();
        let skip = "data.on_malformed_row=skip skips such rows";
        if part == MarkedPart::Call {
            return format!(
                "message {i} ({role}): the chat template does not write its \"tool_calls\": use a template that writes calls, or \
                 write the call into the message's \"content\"; {skip}"
            );
        }
        let writes = |other: &&str| {
            let mut messages = messages.to_vec();
            messages[i]["role"] = (*other).into();
            self.lost(&messages).is_some_and(|lost| lost.is_none_or(|(lost, _)| lost != i))
        };
        let others: Vec<&str> = known_roles().filter(|other| *other != role).filter(writes).collect();
        let others = match others.is_empty() {
            true => String::new(),
            false => format!("use another role (the template writes {} there), ", others.join(", ")),
        };
        format!(
            "message {i}: the chat template does not write the text of a message with the role \"{role}\" there: {others}remove \
             the message, or use another template; {skip}"
        )
    }

    /// Warns about message fields that neither training nor the template reads.
    fn name_unread(&self, messages: &[Value]) {
        let fields = messages.iter().filter_map(Value::as_object).flatten();
        for (name, _) in fields.filter(|(name, value)| is_set(value) && !USUAL.contains(&name.as_str())) {
            let (warn_once, name) = (|text| self.tokenizer.shapes().warn_once(text), name.as_str());
            let names = if THOUGHTS.contains(&name) { THOUGHTS } else { &[name][..] };
            if names.iter().any(|name| self.tokenizer.template_has(name)) {
                continue;
            }
            warn_once(match (WEIGHTS.contains(&name), THOUGHTS.contains(&name)) {
                (true, _) => format!(
                    "messages have the field \"{name}\", which has no effect here: it is a loss weight for supervised training \
                     (data.messages_key of trainer sft)"
                ),
                (_, true) => format!(
                    "messages have thoughts in the field \"{name}\", but the chat template does not write them: the model does not see \
                     them; use a template that writes them, or write them into \"content\""
                ),
                _ => format!("messages have the field \"{name}\", which neither training nor the chat template reads"),
            });
        }
    }
}

/// Replaces each text and the name of each call by a unique word, and returns these words.
fn marked(messages: &[Value]) -> (Vec<Value>, Vec<(usize, MarkedPart, String)>) {
    let (mut messages, mut marks) = (messages.to_vec(), Vec::new());
    for (i, fields) in messages.iter_mut().enumerate().filter_map(|(i, message)| Some((i, message.as_object_mut()?))) {
        let mut put = |place: &mut Value, part| {
            if place.as_str().is_some_and(|text| !text.trim().is_empty()) {
                let mark = format!("words{}of{i}kept", marks.len());
                *place = mark.clone().into();
                marks.push((i, part, mark));
            }
        };
        match fields.get_mut("content") {
            Some(Value::Array(parts)) => parts.iter_mut().for_each(|part| match part {
                Value::Object(part) => part.get_mut("text").into_iter().for_each(|text| put(text, MarkedPart::Text)),
                text => put(text, MarkedPart::Text),
            }),
            Some(text) => put(text, MarkedPart::Text),
            None => {}
        }
        let calls = fields.get_mut("tool_calls").and_then(Value::as_array_mut);
        for call in calls.into_iter().flatten().filter_map(Value::as_object_mut) {
            let name = match call.contains_key("function") {
                true => call.get_mut("function").and_then(Value::as_object_mut).and_then(|function| function.get_mut("name")),
                false => call.get_mut("name"),
            };
            name.into_iter().for_each(|name| put(name, MarkedPart::Call));
        }
    }
    (messages, marks)
}

/// Returns the messages of a conversation, after the system message of a column `system` (ShareGPT, Alpaca).
///
/// # Errors
/// A row with both this column and a different system message.
pub(crate) fn with_system(columns: &Map<String, Value>, messages: Vec<Value>) -> Result<Vec<Value>> {
    let Some(system) = columns.get(SYSTEM).and_then(Value::as_str).filter(|text| !text.trim().is_empty()) else {
        return Ok(messages);
    };
    let first = messages.first().filter(|message| message["role"] == "system");
    match first {
        Some(message) if message["content"] == system => Ok(messages),
        Some(_) => bail!("the conversation has a system message, and column \"{SYSTEM}\" has another: remove one of the two"),
        None => Ok([vec![serde_json::json!({"role": "system", "content": system})], messages].concat()),
    }
}

/// Note for a row of plain texts with a system message.
pub(crate) const NO_SYSTEM: &str = "have a column \"system\" that is not used, because their prompts are plain text";

/// Returns the note for a row of plain texts, if it has a system message.
pub(crate) fn note_of_system(columns: &Map<String, Value>) -> Option<&'static str> {
    let system = columns.get(SYSTEM).and_then(Value::as_str);
    system.filter(|text| !text.trim().is_empty()).map(|_| NO_SYSTEM)
}

/// Column of a system message.
pub(crate) const SYSTEM: &str = "system";
