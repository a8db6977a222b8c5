//! The view of a conversation in the form that tools and users get in their process.

use serde_json::{Value, json};

use crate::tools::ConversationView;

/// Returns the fields of verl's `agent_data`; as in verl, `prompt_ids` are all tokens so far.
pub(super) fn fields(view: &ConversationView) -> Value {
    let all: Vec<u32> = view.prompt.iter().chain(view.response).copied().collect();
    let mask: Vec<u8> = view.sampled.iter().map(|sampled| u8::from(*sampled)).collect();
    json!({
        "messages": view.messages,
        "assistant_turns": view.assistant_turns,
        "user_turns": view.user_turns,
        "tool_rewards": view.tool_rewards,
        "turn_scores": view.turn_scores,
        "prompt_ids": all,
        "response_ids": view.response,
        "response_mask": mask,
    })
}

/// Reads a number from a process; numbers that JSON lacks are sent as text.
pub(super) fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}
