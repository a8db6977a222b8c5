//! The messages of requests: conversion for chat templates, and comparison with served messages.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::body_json::{MAX_VALUES, ValueBudget};
use super::error::ApiError;

/// Checks the messages of a request: at least one, each with a role and with text content.
///
/// # Errors
/// If a message is invalid; the error names it.
pub(super) fn checked(messages: Vec<Value>) -> Result<Vec<Value>, ApiError> {
    if messages.is_empty() {
        return Err(ApiError::field("messages", "`messages` must be a list of at least one message"));
    }
    // Arguments of calls are JSON within JSON.
    let budget = ValueBudget::default();
    for (i, message) in messages.iter().enumerate() {
        let wrong = |expected: &str| Err(ApiError::field("messages", format!("`messages[{i}]` {expected}")));
        if !message.get("role").is_some_and(Value::is_string) {
            return wrong("must be an object with `role`, a text");
        }
        let content = message.get("content").filter(|content| !content.is_null());
        let calls = message.get("tool_calls").filter(|calls| !calls.is_null());
        if content.is_none() && calls.is_none() && message["role"] != "assistant" {
            return wrong("must have `content`");
        }
        if content.is_some_and(|content| text(content).is_none()) {
            return wrong(
                "must have `content` that is text, or a list of {\"type\": \"text\", \"text\": …}: other content is not supported",
            );
        }
        if calls.is_some_and(|calls| !calls.as_array().is_some_and(|calls| calls.iter().all(is_call))) {
            return wrong("must have `tool_calls` that are a list of {\"function\": {\"name\": …, \"arguments\": …}}");
        }
        for arguments in calls.and_then(Value::as_array).into_iter().flatten().filter_map(arguments) {
            _ = budget.value(arguments.as_bytes());
            if budget.is_spent() {
                return wrong(&format!("must have fewer than {MAX_VALUES} values in all arguments of calls so far"));
            }
        }
    }
    Ok(messages)
}

/// Returns the arguments of a call, if they are a text.
fn arguments(call: &Value) -> Option<&str> {
    call.pointer("/function/arguments").and_then(Value::as_str)
}

fn is_call(call: &Value) -> bool {
    call.pointer("/function/name").is_some_and(Value::is_string)
}

/// Returns the text of a content; `None` if it has parts other than text. Parts are joined by newlines, as in vLLM.
fn text(content: &Value) -> Option<String> {
    let part = |part: &Value| match part {
        Value::String(text) => Some(text.clone()),
        part => {
            let kind = part.get("type").and_then(Value::as_str).unwrap_or("text");
            let name = if kind == "refusal" { "refusal" } else { "text" };
            let is_text = ["text", "refusal", "input_text", "output_text"].contains(&kind);
            part.get(name).and_then(Value::as_str).filter(|_| is_text).map(str::to_owned)
        }
    };
    match content {
        Value::Null => Some(String::new()),
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => parts.iter().map(part).collect::<Option<Vec<_>>>().map(|parts| parts.join("\n")),
        _ => None,
    }
}

fn content(message: &Value) -> String {
    message.get("content").and_then(text).unwrap_or_default()
}

/// Returns the bytes of a message's content.
pub(super) fn content_bytes(message: &Value) -> usize {
    let text = |value: &Value| value.as_str().map_or(0, str::len);
    let part = |part: &Value| text(part) + part.get("text").map_or(0, text);
    match message.get("content") {
        Some(Value::Array(parts)) => parts.iter().map(part).sum(),
        content => content.map_or(0, text),
    }
}

/// Returns the bytes of all texts in a value, including names.
pub(super) fn text_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(list) => list.iter().map(text_bytes).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + text_bytes(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// Converts a message for chat templates: content as one text, call arguments as objects, `developer` as `system` (which
/// templates know), and no null fields.
pub fn for_template(message: &Value) -> Value {
    let mut fields: Map<String, Value> = Map::new();
    for (name, value) in message.as_object().into_iter().flatten() {
        let value = match (name.as_str(), value) {
            ("role", role) if role == "developer" => "system".into(),
            ("tool_calls", Value::Array(calls)) if calls.is_empty() => continue,
            ("tool_calls", Value::Array(calls)) => calls.iter().map(call_for_template).collect(),
            (_, Value::Null) => continue,
            (_, value) => value.clone(),
        };
        fields.insert(name.clone(), value);
    }
    fields.insert("content".to_owned(), content(message).into());
    Value::Object(fields)
}

fn call_for_template(call: &Value) -> Value {
    let mut call = call.clone();
    if let Some(arguments) = call.pointer_mut("/function/arguments")
        && let Some(object) = arguments.as_str().and_then(object)
    {
        *arguments = object;
    }
    call
}

/// Parses a text as an object; `None` if it is anything else.
fn object(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().filter(Value::is_object)
}

/// The fields of messages that are compared, or that chat templates commonly read.
const KNOWN: &[&str] = &["role", "content", "name", "tool_calls", "tool_call_id"];

/// Removes the fields that [`identity`] does not have and that the template does not name.
pub(super) fn keep_read_fields(messages: &mut [Value], template_names: impl Fn(&str) -> bool) {
    let mut verdicts: HashMap<String, bool> = HashMap::new();
    let mut is_read =
        |name: &String| KNOWN.contains(&name.as_str()) || *verdicts.entry(name.clone()).or_insert_with(|| template_names(name));
    messages.iter_mut().filter_map(Value::as_object_mut).for_each(|fields| fields.retain(|name, _| is_read(name)));
}

/// Returns the bytes of memory that a value takes, roughly.
pub(super) fn memory_of(value: &Value) -> usize {
    /// The bytes of an entry of a map, without the texts of name and value.
    const ENTRY: usize = 48;
    let inside = match value {
        Value::String(text) => text.capacity(),
        Value::Array(list) => list.iter().map(memory_of).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| ENTRY + name.capacity() + memory_of(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    size_of::<Value>() + inside
}

/// The part of a message that tells it from others. Differences that clients introduce do not count: added or omitted null fields,
/// text as parts, stripped responses, and reformatted JSON arguments.
#[derive(PartialEq, Hash)]
pub(super) struct MessageIdentity {
    role: String,
    text: String,
    call_id: Value,
    calls: Vec<(String, Value)>,
}

pub(super) fn identity(message: &Value) -> MessageIdentity {
    let role = match message["role"].as_str() {
        Some("developer") => "system",
        role => role.unwrap_or_default(),
    };
    let text = content(message);
    MessageIdentity {
        role: role.to_owned(),
        text: if role == "assistant" { text.trim().to_owned() } else { text },
        call_id: message.get("tool_call_id").cloned().unwrap_or_default(),
        calls: calls(message),
    }
}

/// Returns the names and arguments of calls. Ids are left out: some programs make their own.
fn calls(message: &Value) -> Vec<(String, Value)> {
    let call = |call: &Value| {
        let name = call.pointer("/function/name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let arguments = call.pointer("/function/arguments").cloned().unwrap_or_default();
        (name, arguments.as_str().and_then(object).unwrap_or(arguments))
    };
    message.get("tool_calls").and_then(Value::as_array).into_iter().flatten().map(call).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn is_same(known: &Value, sent: &Value) -> bool {
        identity(known) == identity(sent)
    }

    #[test]
    fn what_clients_do_to_an_answer_makes_no_other_message() {
        let call = |id: &str, arguments: &str| json!([{"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}}]);
        let served = json!({"role": "assistant", "content": "So.\n", "tool_calls": call("call_1", r#"{"a": 1}"#)});
        for same in [
            json!({"role": "assistant", "content": "So.", "refusal": null, "audio": null, "tool_calls": call("x", r#"{"a":1}"#)}),
            json!({"role": "assistant", "content": [{"type": "text", "text": "So."}], "tool_calls": call("x", r#"{ "a": 1 }"#)}),
        ] {
            assert!(is_same(&served, &same), "{same}");
        }
        for other in [
            json!({"role": "user", "content": "So.", "tool_calls": call("x", r#"{"a":1}"#)}),
            json!({"role": "assistant", "content": "No.", "tool_calls": call("x", r#"{"a":1}"#)}),
            json!({"role": "assistant", "content": "So.", "tool_calls": call("x", r#"{"a":2}"#)}),
            json!({"role": "assistant", "content": "So.", "tool_calls": []}),
            json!({"role": "assistant", "content": "So."}),
        ] {
            assert!(!is_same(&served, &other), "{other}");
        }
        assert!(is_same(
            &json!({"role": "assistant", "content": ""}),
            &json!({"role": "assistant", "content": null, "tool_calls": null})
        ));
    }

    #[test]
    fn templates_get_text_and_objects() {
        let message = json!({"role": "assistant", "content": null, "name": null, "tool_calls": [{"function": {"name": "f", "arguments": "{\"a\": 1}"}}]});
        let expected =
            json!({"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]});
        assert_eq!(for_template(&message), expected);
        let parts = json!({"role": "developer", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]});
        assert_eq!(for_template(&parts), json!({"role": "system", "content": "a\nb"}));
        let image = json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]});
        // Each text is within the limit of values, all together are not.
        let many = json!({"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": format!("[{}1]", "1,".repeat(99_999))}}]});
        assert!(checked(vec![many.clone()]).is_ok());
        assert!(checked(vec![many; 2]).unwrap_err().message.contains("messages[1]"));
        assert!(checked(vec![image]).unwrap_err().message.contains("messages[0]"));
    }
}
