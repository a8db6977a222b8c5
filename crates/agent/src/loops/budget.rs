//! What the bounds of a conversation leave of it. They count tokens of all turns and of all that is said between them.

use super::super::{End, Limits};

/// The number of tokens that may follow a prompt and the first `response` tokens of its response.
///
/// verl allows a late turn what a short prompt did not use of `prompt_length`, and cuts the response to its length afterwards; the tokens
/// that are kept are the same.
pub fn room(limits: &Limits, prompt: usize, response: usize) -> usize {
    let of_response = limits.response_length.saturating_sub(response);
    let of_model = limits.max_model_len.map_or(usize::MAX, |longest| longest.saturating_sub(prompt.saturating_add(response)));
    of_response.min(of_model)
}

/// The bound that ends a conversation after a turn of the model, in the order in which verl looks at them; 0 is no bound, as there.
pub fn bound_reached(limits: &Limits, room: usize, assistant_turns: usize, user_turns: usize) -> Option<End> {
    let reached = |limit: Option<usize>, turns: usize| limit.is_some_and(|limit| limit > 0 && turns >= limit);
    if room == 0 {
        Some(End::Length)
    } else if reached(limits.max_assistant_turns, assistant_turns) {
        Some(End::AssistantTurns)
    } else if reached(limits.max_user_turns, user_turns) {
        Some(End::UserTurns)
    } else {
        None
    }
}
