//! The view of a conversation in the form that tools and users get in their process.

use serde_json::{Value, json};

use crate::tools::ConversationView;

/// Returns the fields of verl's `agent_data`; as in verl, `prompt_ids` are all tokens so far.
pub(super) fn fields(seen: &ConversationView) -> Value {
    let all: Vec<u32> = seen.prompt.iter().chain(seen.response).copied().collect();
    let mask: Vec<u8> = seen.sampled.iter().map(|sampled| u8::from(*sampled)).collect();
    json!({
        "messages": seen.messages,
        "assistant_turns": seen.assistant_turns,
        "user_turns": seen.user_turns,
        "tool_rewards": seen.tool_rewards,
        "turn_scores": seen.turn_scores,
        "prompt_ids": all,
        "response_ids": seen.response,
        "response_mask": mask,
    })
}

/// Reads a number from a process; numbers that JSON lacks are sent as text.
pub(super) fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}
