//! The remaining token and turn limits of a conversation. They count the tokens of all turns and of all messages between the
//! turns.

use super::super::{ConversationLimits, EndReason};

/// Returns the number of tokens that may follow a prompt and the first `response` tokens of its response.
///
/// verl gives late turns what a short prompt left unused of `prompt_length`, and truncates the response afterwards; the kept
/// tokens are the same.
pub(super) fn room(limits: &ConversationLimits, prompt: usize, response: usize) -> usize {
    let of_response = limits.response_length.saturating_sub(response);
    let of_model = limits.max_model_len.map_or(usize::MAX, |longest| longest.saturating_sub(prompt.saturating_add(response)));
    of_response.min(of_model)
}

/// Returns the limit that ends the conversation after a turn of the model, in verl's order of checks; 0 means unlimited, as in
/// verl.
pub(crate) fn bound_reached(
    limits: &ConversationLimits,
    room: usize,
    assistant_turns: usize,
    user_turns: usize,
) -> Option<EndReason> {
    let reached = |limit: Option<usize>, turns: usize| limit.is_some_and(|limit| limit > 0 && turns >= limit);
    if room == 0 {
        Some(EndReason::Length)
    } else if reached(limits.max_assistant_turns, assistant_turns) {
        Some(EndReason::AssistantTurns)
    } else if reached(limits.max_user_turns, user_turns) {
        Some(EndReason::UserTurns)
    } else {
        None
    }
}
