//! The names of tools for their results, for templates that write them.

use anyhow::{Result, bail, ensure};
use serde_json::Value;

use crate::tokens::group::{MessageGroup, role};
use crate::tokens::synthetic::name;
use burnish_util::python_value::text_of;

/// Returns the name of the tool for a result of a group: the result's own name, the name of the call with its id, or the name of
/// the call at its position in the assistant's last message.
///
/// # Errors
/// If a call is missing, or the numbers of calls and results differ.
pub(crate) fn tool_name(group: &MessageGroup, index: usize) -> Result<String> {
    let answer = &group.messages[index];
    if let Some(name) = name(answer) {
        return Ok(name);
    }
    let calls = group.before().find(|message| role(message) == "assistant").and_then(|message| message.get("tool_calls"));
    let calls = calls.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let named = |call: &Value| call.get("function")?.get("name").filter(|name| !name.is_null()).map(text_of);
    if let Some(id) = answer.get("tool_call_id").filter(|id| !id.is_null()).map(text_of) {
        let has_id = |call: &&Value| call.get("id").filter(|id| !id.is_null()).is_some_and(|call_id| text_of(call_id) == id);
        if let Some(name) = calls.iter().filter(has_id).find_map(named) {
            return Ok(name);
        }
    }
    ensure!(
        calls.len() == group.messages.len(),
        "the chat format writes the names of tools, and results without \"name\" cannot be matched with calls: there are {} results, and the \
         assistant's last message has {} calls",
        group.messages.len(),
        calls.len()
    );
    match named(&calls[index]) {
        Some(name) => Ok(name),
        None => bail!("call {index} of the assistant's last message has no function name"),
    }
}
