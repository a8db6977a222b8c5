//! A conversation as text for people: one paragraph per turn, with the calls of tools under the turn that made them.

use serde_json::Value;

/// Returns the messages of a conversation as turns, `role: text` each. Calls follow an arrow, as `→ name(arguments)`.
pub(super) fn turns(messages: &[Value]) -> String {
    messages.iter().map(turn).collect::<Vec<_>>().join("\n")
}

fn turn(message: &Value) -> String {
    let role = message["role"].as_str().unwrap_or("?");
    let reasoning = message["reasoning_content"].as_str().filter(|text| !text.trim().is_empty());
    let spoken = reasoning.map(|text| format!("<think>{text}</think> ")).unwrap_or_default() + text(&message["content"]).trim();
    let mut lines = Vec::new();
    let calls = message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
    if calls.is_empty() || !spoken.trim().is_empty() {
        lines.push(format!("{role}: {}", spoken.trim()));
    }
    lines.extend(calls.iter().map(|call| format!("{role} → {}", written(call))));
    lines.join("\n")
}

/// Returns the text of a message: text, a list of parts, or an empty text.
fn text(content: &Value) -> String {
    match content {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(part).collect(),
        other => other.to_string(),
    }
}

fn part(part: &Value) -> String {
    part["text"].as_str().map_or_else(|| format!("[{}]", part["type"].as_str().unwrap_or("?")), str::to_owned)
}

/// `name(arguments)`.
fn written(call: &Value) -> String {
    let function = call.get("function").unwrap_or(call);
    let arguments = match &function["arguments"] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    format!("{}({arguments})", function["name"].as_str().unwrap_or("?"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_message_is_a_turn() {
        let call = |arguments: Value| json!({"type": "function", "function": {"name": "add", "arguments": arguments}});
        let messages = [
            json!({"role": "assistant", "content": "", "tool_calls": [call(json!({"a": 1})), call(json!("{\"a\":"))]}),
            json!({"role": "tool", "content": [{"type": "text", "text": "1"}, {"type": "image"}]}),
            json!({"role": "assistant", "content": " So 1. ", "reasoning_content": "hm"}),
            json!(null),
        ];
        let expected =
            "assistant → add({\"a\":1})\nassistant → add({\"a\":)\ntool: 1[image]\nassistant: <think>hm</think> So 1.\n?: ";
        assert_eq!(turns(&messages), expected);
    }
}
