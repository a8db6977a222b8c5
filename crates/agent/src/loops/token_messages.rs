//! Messages of a conversation that is known as tokens only.

use anyhow::Result;
use serde_json::{Value, json};

/// Converts the tokens of a response to messages: each turn of the model is an assistant message, the text between turns is the
/// user's. `turn` returns the turn that sampled the token at an index, if any; `text` decodes tokens.
///
/// # Errors
/// The errors of `text`.
pub(crate) fn messages_from_tokens(
    ids: &[u32],
    turn: impl Fn(usize) -> Option<usize>,
    text: impl Fn(&[u32]) -> Result<String>,
) -> Result<Vec<Value>> {
    let (mut messages, mut from) = (Vec::new(), 0);
    while from < ids.len() {
        let to = (from..ids.len()).find(|place| turn(*place) != turn(from)).unwrap_or(ids.len());
        let role = if turn(from).is_some() { "assistant" } else { "user" };
        messages.push(json!({"role": role, "content": text(&ids[from..to])?}));
        from = to;
    }
    Ok(messages)
}

/// Returns true if a message that the model did not write precedes the model's last turn.
pub(crate) fn has_context(messages: &[Value]) -> bool {
    let is_model = |message: &Value| message["role"] == "assistant";
    let last = messages.iter().rposition(is_model).unwrap_or(0);
    !messages[..last].iter().all(is_model)
}
