//! The names that data sets have for the roles of messages, and messages in ShareGPT's form.

use serde_json::{Map, Value, json};

/// The role of an assistant's turn that is a call of a tool, in LLaMA-Factory's form of ShareGPT: its text is the call as JSON.
const FUNCTION_CALL: &str = "function_call";

/// Other names of the roles that chat templates know, in lower case.
const OTHER_NAMES: &[(&str, &[&str])] = &[
    ("user", &["user", "human", "prompter", "customer"]),
    ("assistant", &["assistant", "gpt", "chatgpt", "model", "bot", "chatbot", "ai"]),
    ("system", &["system", "developer"]),
    ("tool", &["tool", "observation", "function", "function_response", "tool_response", "ipython"]),
];

/// Returns the role that chat templates know by the name which they do not: `user` for `Human`.
pub(crate) fn known_role(role: &str) -> Option<&'static str> {
    let lower = role.to_lowercase();
    let (known, _) = OTHER_NAMES.iter().find(|(_, names)| names.contains(&lower.as_str()))?;
    (*known != role).then_some(known)
}

/// Returns the roles that chat templates know.
pub(crate) fn known_roles() -> impl Iterator<Item = &'static str> {
    OTHER_NAMES.iter().map(|(role, _)| *role)
}

/// Returns a message of ShareGPT's form (`from`, `value`) with the names that chat templates read; others stay as they are.
pub(crate) fn named(message: &Value) -> Value {
    let Some(fields) = message.as_object().filter(|fields| fields.contains_key("from") && !fields.contains_key("role")) else {
        return message.clone();
    };
    let renamed = fields.iter().map(|(key, value)| match key.as_str() {
        "from" => ("role".to_owned(), value.as_str().map_or_else(|| value.clone(), |from| role(from).into())),
        "value" => ("content".to_owned(), value.clone()),
        _ => (key.clone(), value.clone()),
    });
    Value::Object(renamed.collect::<Map<_, _>>())
}

/// Returns the role of a speaker in ShareGPT's names.
fn role(from: &str) -> &str {
    match from {
        "human" => "user",
        "gpt" => "assistant",
        "observation" => "tool",
        other => other,
    }
}

/// Returns true if a message has the role of a call.
pub(crate) fn is_call(message: &Value) -> bool {
    message.get("role").is_some_and(|role| role == FUNCTION_CALL)
}

/// Makes a message of the role `function_call` the assistant's. Where the template writes calls, its text becomes `tool_calls`,
/// if it is a call as JSON, or a list of calls.
pub(crate) fn spoken(message: &mut Value, writes_calls: bool) {
    let Some(fields) = message.as_object_mut().filter(|fields| fields.get("role").is_some_and(|role| role == FUNCTION_CALL))
    else {
        return;
    };
    fields.insert("role".to_owned(), "assistant".into());
    let calls = fields.get("content").and_then(Value::as_str).and_then(calls).filter(|_| writes_calls);
    if let Some(calls) = calls {
        fields.insert("content".to_owned(), "".into());
        fields.insert("tool_calls".to_owned(), calls);
    }
}

/// Reads `{"name": …, "arguments": {…}}`, or a list of such calls.
fn calls(text: &str) -> Option<Value> {
    let read: Value = serde_json::from_str(text).ok()?;
    let list = if read.is_array() { read } else { json!([read]) };
    let call = |call: &Value| {
        let (name, arguments) = (call.get("name")?.as_str()?, call.get("arguments")?.as_object()?);
        Some(json!({"type": "function", "function": {"name": name, "arguments": arguments}}))
    };
    let calls = list.as_array()?.iter().map(call).collect::<Option<Vec<_>>>()?;
    (!calls.is_empty()).then(|| calls.into())
}
