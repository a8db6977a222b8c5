//! Refuses conversations whose texts a chat template leaves out. Many templates have a branch for each role that they know, and
//! write nothing of a message that has another one: `human`, `function_call`, a second system message.
//!
//! A template may strip, trim and escape what it writes, or leave thoughts out. So each text is replaced by a mark, a word of its
//! own, and the marks are looked for in what the template makes of them. This is done once for conversations of one shape.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use anyhow::{Result, bail};
use serde_json::{Map, Value};

use super::roles::{is_call, known_role, known_roles, spoken};
use super::shapes::Verdict;
use super::variables::TemplateVariables;
use crate::tokens::tokenizer::Tokenizer;

/// The fields of a message that weigh what is learnt of it, of OpenAI's rows (`weight`), Mistral's and LLaMA-Factory's (`train`),
/// slime's and ms-swift's (`loss`), and verl's users (`loss_mask`, `mask`). Supervised training takes them out before a template
/// sees the message.
pub(crate) const WEIGHTS: &[&str] = &["weight", "train", "loss", "loss_mask", "mask"];

/// The fields of thoughts, under the names that templates and data sets have for them.
const THOUGHTS: &[&str] = &["reasoning_content", "reasoning", "thinking"];

/// The fields that OpenAI's messages have, whether a template reads them or not.
const USUAL: &[&str] =
    &["role", "content", "tool_calls", "tool_call_id", "name", "id", "type", "refusal", "annotations", "audio"];

/// Returns the messages with roles whose texts the template writes. A message of a role that it leaves out gets the known role of
/// that meaning (`human` is `user`), which is said once. `asks`: the conversation is a prompt.
///
/// # Errors
/// A message with a text or a call that the template leaves out.
pub(crate) fn fit_to_template(
    mut messages: Vec<Value>,
    asks: bool,
    tokenizer: &Tokenizer,
    variables: &TemplateVariables,
) -> Result<Vec<Value>> {
    let template = Template { asks, tokenizer, variables };
    if messages.iter().any(is_call) {
        // The call is the template's to write, or else a text.
        let as_call = tokenizer.template_has("tool_calls");
        let mut called = messages.clone();
        called.iter_mut().for_each(|message| spoken(message, as_call));
        if as_call && matches!(*template.verdict(&called), Verdict::Lost(_)) {
            called = messages;
            called.iter_mut().for_each(|message| spoken(message, false));
        }
        messages = called;
    }
    match &*template.verdict(&messages) {
        Verdict::Lost(error) => bail!("{error}"),
        Verdict::Written(renamed) => {
            renamed.iter().for_each(|(from, to)| rename(&mut messages, from, to));
            Ok(messages)
        }
    }
}

/// Returns a hash of all that decides whether the texts of a conversation are written, but for the texts.
fn shape(messages: &[Value], template: &Template) -> u64 {
    let mut hasher = DefaultHasher::new();
    (template.asks, template.variables.has_tools()).hash(&mut hasher);
    for message in messages {
        message.get("role").and_then(Value::as_str).hash(&mut hasher);
        let Some(fields) = message.as_object() else { continue };
        for (name, value) in fields.iter().filter(|(_, value)| is_something(value)) {
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

fn is_something(value: &Value) -> bool {
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

/// The template as a conversation meets it.
struct Template<'a> {
    asks: bool,
    tokenizer: &'a Tokenizer,
    variables: &'a TemplateVariables,
}

/// A part of a message that a mark stands for.
#[derive(Clone, Copy, PartialEq)]
enum MarkedPart {
    Text,
    Call,
}

impl Template<'_> {
    fn verdict(&self, messages: &[Value]) -> Arc<Verdict> {
        self.tokenizer.shapes().verdict(shape(messages, self), || self.judge(messages))
    }

    fn judge(&self, messages: &[Value]) -> Verdict {
        self.name_unread(messages);
        let (mut messages, mut renamed) = (messages.to_vec(), Vec::<(String, &str)>::new());
        loop {
            let lost = self.lost(&messages);
            // A template that refuses a conversation may do so for a role.
            let suspects = match &lost {
                Some(None) => {
                    renamed.iter().for_each(|(from, to)| self.say_renamed(from, to));
                    return Verdict::Written(renamed);
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
                (None, Some((i, part))) => return Verdict::Lost(self.error(&messages, i, part)),
                // The template's own error says what it refuses.
                (None, None) => return Verdict::Written(Vec::new()),
            }
        }
    }

    fn say_renamed(&self, from: &str, to: &str) {
        self.tokenizer.shapes().say(format!(
            "messages of the role \"{from}\" are read as those of the role \"{to}\": the chat template does not know \"{from}\""
        ));
    }

    /// Returns the first message with a part that is not written, if there is one; `None` if the template refuses the
    /// conversation.
    fn lost(&self, messages: &[Value]) -> Option<Option<(usize, MarkedPart)>> {
        let (marked, marks) = marked(messages);
        let text = self.tokenizer.apply_chat_template(&marked.into(), self.asks, self.variables).ok()?.to_lowercase();
        let mut lost = marks.into_iter().filter(|(_, _, mark)| !text.contains(mark)).map(|(i, part, _)| (i, part)).peekable();
        while let Some((i, part)) = lost.next() {
            let calls_too = lost.peek().is_some_and(|(other, part)| *other == i && *part == MarkedPart::Call);
            if part == MarkedPart::Call || calls_too || !messages[i].get("tool_calls").is_some_and(is_something) {
                return Some(Some((i, part)));
            }
            // Some templates take the text of a turn with calls for thoughts, which they leave out as such.
            self.tokenizer.shapes().say(
                "messages of the assistant have a text next to their calls, and the chat template writes the calls alone: the text is not \
                 part of what the model gets"
                    .to_owned(),
            );
        }
        Some(None)
    }

    fn error(&self, messages: &[Value], i: usize, part: MarkedPart) -> String {
        let role = messages[i]["role"].as_str().unwrap_or_default();
        let skip = "data.on_malformed_row=skip leaves such rows out";
        if part == MarkedPart::Call {
            return format!(
                "message {i} ({role}): the chat template writes nothing of its \"tool_calls\": give a template that writes calls, or \
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
            false => format!("write another role (in its place the template knows {}), ", others.join(", ")),
        };
        format!(
            "message {i}: the chat template writes nothing of the text of a message of the role \"{role}\" there: {others}take the message out, \
             or give another template; {skip}"
        )
    }

    /// Says which fields of messages neither training nor the template reads.
    fn name_unread(&self, messages: &[Value]) {
        let fields = messages.iter().filter_map(Value::as_object).flatten();
        for (name, _) in fields.filter(|(name, value)| is_something(value) && !USUAL.contains(&name.as_str())) {
            let (say, name) = (|text| self.tokenizer.shapes().say(text), name.as_str());
            let names = if THOUGHTS.contains(&name) { THOUGHTS } else { &[name][..] };
            if names.iter().any(|name| self.tokenizer.template_has(name)) {
                continue;
            }
            say(match (WEIGHTS.contains(&name), THOUGHTS.contains(&name)) {
                (true, _) => format!(
                    "messages have the field \"{name}\", which has no effect here: it weighs what supervised training learns of a \
                     conversation (data.messages_key of trainer sft)"
                ),
                (_, true) => format!(
                    "messages have thoughts in the field \"{name}\", and the chat template writes none: the model does not see them; \
                     give a template that writes them, or write them into \"content\""
                ),
                _ => format!("messages have the field \"{name}\", which neither training nor the chat template reads"),
            });
        }
    }
}

/// Returns the messages with a word of its own in place of each text and of the name of each call, and these words.
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

/// Returns the messages of a conversation, with that of a column `system` before them (ShareGPT, Alpaca).
///
/// # Errors
/// A row with both that column and another system message.
pub(crate) fn with_system(columns: &Map<String, Value>, messages: Vec<Value>) -> Result<Vec<Value>> {
    let Some(system) = columns.get(SYSTEM).and_then(Value::as_str).filter(|text| !text.trim().is_empty()) else {
        return Ok(messages);
    };
    let first = messages.first().filter(|message| message["role"] == "system");
    match first {
        Some(message) if message["content"] == system => Ok(messages),
        Some(_) => bail!("the conversation has a system message, and column \"{SYSTEM}\" is another: drop one of the two"),
        None => Ok([vec![serde_json::json!({"role": "system", "content": system})], messages].concat()),
    }
}

/// The note of a row of plain texts that has a system message.
pub(crate) const NO_SYSTEM: &str = "have a column \"system\" that nothing reads, because their prompts are plain text";

/// Returns the note of a row of plain texts, if it has a system message.
pub(crate) fn note_of_system(columns: &Map<String, Value>) -> Option<&'static str> {
    let system = columns.get(SYSTEM).and_then(Value::as_str);
    system.filter(|text| !text.trim().is_empty()).map(|_| NO_SYSTEM)
}

/// The column of a system message.
pub(crate) const SYSTEM: &str = "system";
