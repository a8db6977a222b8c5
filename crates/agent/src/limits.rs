//! The bounds of a conversation.

use std::time::Duration;

/// The bounds of a conversation. `None` is no bound.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The number of turns that the model may take (`multi_turn.max_assistant_turns`).
    pub max_assistant_turns: Option<usize>,
    /// The number of turns that tools and users may take (`multi_turn.max_user_turns`); the calls of one turn are one.
    pub max_user_turns: Option<usize>,
    /// The number of calls of one turn that are carried out (`multi_turn.max_parallel_calls`).
    pub max_parallel_calls: usize,
    /// The longest answer of a tool in characters (`multi_turn.max_tool_response_length`).
    pub max_tool_response_length: usize,
    pub truncate: TruncateSide,
    /// The number of tokens of a prompt that are kept, from its end.
    pub prompt_length: usize,
    /// The number of tokens of a response: all turns, and what tools and users say between them.
    pub response_length: usize,
    /// The number of tokens of prompt and response together.
    pub max_model_len: Option<usize>,
    /// The most bytes of text that a token stands for: a longer text than the room allows is not tokenized.
    pub longest_token: usize,
    /// The time that one call of a tool may take.
    pub call_timeout: Duration,
    /// The time that a conversation may take in tools, users and environments, in all.
    pub conversation_timeout: Option<Duration>,
}

/// The side on which a tool's answer is cut, as the edition of verl names it that a configuration is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TruncateSide {
    /// The beginning goes.
    Left,
    /// The middle goes.
    Middle,
    /// The end goes.
    Right,
}
