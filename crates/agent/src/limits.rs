//! Limits of a conversation.

use std::time::Duration;

/// Limits of a conversation; `None` means unlimited.
#[derive(Clone, Debug)]
pub struct ConversationLimits {
    /// The limit of turns of the model (`multi_turn.max_assistant_turns`).
    pub max_assistant_turns: Option<usize>,
    /// The limit of turns of tools and users (`multi_turn.max_user_turns`); all calls of one turn count as one.
    pub max_user_turns: Option<usize>,
    /// The limit of calls that are run per turn (`multi_turn.max_parallel_calls`).
    pub max_parallel_calls: usize,
    /// The limit of a tool result in characters (`multi_turn.max_tool_response_length`).
    pub max_tool_response_length: usize,
    pub truncate: TruncateSide,
    /// The token limit of the prompt; the last tokens are kept.
    pub prompt_length: usize,
    /// The token limit of the response: all turns, and the messages of tools and users between them.
    pub response_length: usize,
    /// The token limit of prompt and response together.
    pub max_model_len: Option<usize>,
    /// Maximum number of bytes that one token decodes to. Texts that cannot fit are not tokenized at all.
    pub longest_token: usize,
    /// The time limit of one tool call.
    pub call_timeout: Duration,
    /// The limit of the total time that a conversation waits for tools, users and environments.
    pub conversation_timeout: Option<Duration>,
}

/// The side on which a tool result is cut, in the words of the configuration's verl version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TruncateSide {
    /// The beginning is cut off.
    Left,
    /// The middle is cut out.
    Middle,
    /// The end is cut off.
    Right,
}
