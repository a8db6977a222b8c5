//! Conversations in the form for a chat template: messages without null fields, with contents of text or text parts.

use std::collections::HashSet;
use std::sync::LazyLock;

use anyhow::{Result, bail};
use regex::{Match, Regex};
use serde_json::{Map, Value, json};

/// Returns the messages as transformers passes them to a template, without null fields. Refuses content parts that are not text.
///
/// # Errors
/// If `conversation` is not a list of messages, or a message or a part is malformed.
pub(crate) fn messages(conversation: &Value) -> Result<Vec<Value>> {
    let Some(messages) = conversation.as_array().filter(|list| !list.is_empty()) else {
        bail!("a conversation must be a list of at least one message");
    };
    messages.iter().enumerate().map(|(i, message)| read(i, message)).collect()
}

fn read(i: usize, message: &Value) -> Result<Value> {
    let says = message.get("content").or(message.get("tool_calls")).is_some();
    let (Some(fields), true) = (message.as_object().filter(|fields| fields.get("role").is_some_and(Value::is_string)), says)
    else {
        bail!("message {i} of the conversation must have \"role\" (text), and \"content\" or \"tool_calls\"");
    };
    let mut fields = set(fields);
    let other = fields.get("content").filter(|content| matches!(content, Value::Object(_) | Value::Number(_) | Value::Bool(_)));
    if let Some(other) = other.filter(|_| fields["role"] != "tool") {
        bail!(
            "message {i}: \"content\" must be text or a list of parts such as {{\"type\": \"text\", \"text\": …}}, not {other}"
        );
    }
    // A tool result may be any list.
    let is_result =
        |items: &[Value]| fields["role"] == "tool" && !items.iter().any(|item| item.get("type").is_some_and(Value::is_string));
    if let Some(Value::Array(items)) =
        fields.get("content").filter(|content| !content.as_array().is_some_and(|items| is_result(items)))
    {
        let parts = items.iter().map(|item| part(i, item)).collect::<Result<Vec<_>>>()?;
        fields.insert("content".to_owned(), parts.into());
    }
    Ok(fields.into())
}

/// Returns the non-null fields.
fn set(fields: &Map<String, Value>) -> Map<String, Value> {
    fields.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn part(i: usize, item: &Value) -> Result<Value> {
    let wrong =
        || format!("message {i}: a list as \"content\" must hold parts such as {{\"type\": \"text\", \"text\": …}}, not {item}");
    let fields = match item {
        Value::String(text) => return Ok(json!({"type": "text", "text": text})),
        Value::Object(fields) => set(fields),
        _ => bail!(wrong()),
    };
    match fields.get("type").map(|kind| kind.as_str().unwrap_or_default()) {
        None | Some("text") => {}
        Some(kind) => bail!("message {i}: the content has a part of type \"{kind}\"; only parts of type \"text\" are supported"),
    }
    if !fields.get("text").is_some_and(Value::is_string) {
        bail!(wrong());
    }
    let mut fields = fields;
    fields.entry("type").or_insert("text".into());
    Ok(fields.into())
}

/// Returns the parts of a message's content; `None` if the content is not a list of text parts.
pub(crate) fn parts(message: &Value) -> Option<&[Value]> {
    let parts = message.get("content")?.as_array()?;
    parts.iter().all(|part| part["type"] == "text" && part["text"].is_string()).then_some(parts)
}

/// Returns the message with its parts joined to one text.
pub(crate) fn joined(message: &Value) -> Value {
    let mut message = message.clone();
    if let Some(parts) = parts(&message) {
        let text: String = parts.iter().filter_map(|part| part["text"].as_str()).collect();
        message["content"] = text.into();
    }
    message
}

/// Replaces each part's text by a unique mark, and returns the marks by message. Their positions in a rendering show how the
/// template treats parts.
pub(crate) fn marked(messages: &[Value]) -> (Vec<Value>, Vec<Vec<String>>) {
    let mut marks = vec![Vec::new(); messages.len()];
    let mut out = messages.to_vec();
    for (i, message) in out.iter_mut().enumerate() {
        let count = parts(message).map_or(0, <[Value]>::len);
        for part in 0..count {
            let mark = format!("part{part}of{i}here");
            message["content"][part]["text"] = mark.clone().into();
            marks[i].push(mark);
        }
    }
    (out, marks)
}

/// Returns the marks of [`marked`] in a rendering, and the marks between quotes.
pub(crate) fn marks_in(text: &str) -> (HashSet<&str>, HashSet<&str>) {
    static MARK: LazyLock<Regex> = LazyLock::new(|| Regex::new("part[0-9]+of[0-9]+here").expect("a constant pattern"));
    let marks = || MARK.find_iter(text);
    let is_quoted = |mark: &Match| {
        let around = (text[..mark.start()].chars().next_back(), text[mark.end()..].chars().next());
        matches!(around, (Some('"'), Some('"')) | (Some('\''), Some('\'')))
    };
    let quoted = marks().filter(is_quoted).map(|mark| mark.as_str()).collect();
    (marks().map(|mark| mark.as_str()).collect(), quoted)
}

/// Refuses text that is a conversation written as JSON or by Python's `str`.
pub(crate) fn refuse_written_messages(text: &str) -> Result<()> {
    let text = text.trim();
    let has = |value: &Value, key: &str| value.get(key).is_some_and(Value::is_string);
    let is_message = |value: &Value| has(value, "role") || has(value, "from") && has(value, "value");
    let is_list = |value: &Value| value.as_array().is_some_and(|items| !items.is_empty() && items.iter().all(is_message));
    let is_row = |value: &Value| ["messages", "conversations", "prompt"].iter().any(|key| value.get(key).is_some_and(is_list));
    let is_json = || serde_json::from_str(text).is_ok_and(|value| is_list(&value) || is_message(&value) || is_row(&value));
    let is_python = || {
        let inner = text.trim_start_matches("array(").trim_start_matches(['[', '{', ' ', '\n']);
        ["'role':", "'content':", "'from':"].iter().any(|key| inner.starts_with(key)) && text.ends_with([']', '}', ')'])
    };
    let what = match text.as_bytes().first() {
        Some(b'[' | b'{') if is_json() => "JSON text of a list of messages; store the list itself (json.loads)",
        Some(b'[' | b'{' | b'a') if is_python() => {
            "a list of messages written as Python text; store the list itself (ast.literal_eval)"
        }
        _ => return Ok(()),
    };
    bail!("it holds {what}: as text, the model would read it with all brackets and quotes")
}
