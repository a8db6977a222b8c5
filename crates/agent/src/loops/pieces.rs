//! Messages of a conversation that is known as tokens only.

use anyhow::Result;
use serde_json::{Value, json};

/// The tokens of a response as messages: each turn of the model is the assistant's, and the text between turns is the user's.
/// `turn`: the turn that the token at a place is from, if the model sampled it; `text`: the text of tokens.
///
/// # Errors
/// The pieces of `text`.
pub fn messages_of(
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

/// True if something other than the model speaks before its last turn.
pub fn has_context(messages: &[Value]) -> bool {
    let is_model = |message: &Value| message["role"] == "assistant";
    let last = messages.iter().rposition(is_model).unwrap_or(0);
    !messages[..last].iter().all(is_model)
}
