//! Role names of data sets, and messages in ShareGPT's form.

use serde_json::{Map, Value, json};

/// Role of an assistant's tool call in LLaMA-Factory's variant of ShareGPT; the text is the call as JSON.
const FUNCTION_CALL: &str = "function_call";

/// Alternative names of the standard roles, in lower case.
const OTHER_NAMES: &[(&str, &[&str])] = &[
    ("user", &["user", "human", "prompter", "customer"]),
    ("assistant", &["assistant", "gpt", "chatgpt", "model", "bot", "chatbot", "ai"]),
    ("system", &["system", "developer"]),
    ("tool", &["tool", "observation", "function", "function_response", "tool_response", "ipython"]),
];

/// Returns the standard role for another name, such as `user` for `Human`; `None` if it is standard already or unknown.
pub(crate) fn known_role(role: &str) -> Option<&'static str> {
    let lower = role.to_lowercase();
    let (known, _) = OTHER_NAMES.iter().find(|(_, names)| names.contains(&lower.as_str()))?;
    (*known != role).then_some(known)
}

/// Returns the standard roles of chat templates.
pub(crate) fn known_roles() -> impl Iterator<Item = &'static str> {
    OTHER_NAMES.iter().map(|(role, _)| *role)
}

/// Converts a message of ShareGPT's form (`from`, `value`) to `role` and `content`; returns others unchanged.
pub(crate) fn from_sharegpt(message: &Value) -> Value {
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

/// Returns the role of a ShareGPT speaker.
fn role(from: &str) -> &str {
    match from {
        "human" => "user",
        "gpt" => "assistant",
        "observation" => "tool",
        other => other,
    }
}

/// Returns true if a message has the role `function_call`.
pub(crate) fn is_call(message: &Value) -> bool {
    message.get("role").is_some_and(|role| role == FUNCTION_CALL)
}

/// Converts a message with the role `function_call` to the assistant's. If `writes_calls`, a text that is a JSON call or a list
/// of calls becomes `tool_calls`.
pub(crate) fn call_as_assistant(message: &mut Value, writes_calls: bool) {
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
