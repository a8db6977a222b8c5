//! The result of a conversation: the tokens that are trained, and the record of the events.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use burnish_rollout::Finish;

/// The key of [`Episode::extra`] with the error of an environment, user or loop: one line for people, or `{trouble, message}`.
pub const FAULT: &str = "fault";
/// The key of [`Episode::extra`] with the reward of an environment.
pub(crate) const ENVIRONMENT_REWARD: &str = "environment_reward";

/// A conversation that has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Episode {
    /// The token ids of the prompt.
    pub prompt: Vec<u32>,
    /// The token ids of the response: the model's turns, and the messages of tools and users between them.
    pub ids: Vec<u32>,
    /// For each id of the response, true if the model sampled it.
    pub sampled: Vec<bool>,
    /// Log-probabilities of sampled tokens ([`Response::log_probs`](burnish_rollout::Response)); 0 for the others.
    pub log_probs: Vec<f32>,
    /// Log-probabilities at sampling time ([`Response::rollout_log_probs`](burnish_rollout::Response)); 0 for the others.
    pub rollout_log_probs: Vec<f32>,
    /// [`Finish::Length`] if the last turn was cut off.
    pub finish: Finish,
    pub end: EndReason,
    /// All messages, the prompt's first. Tool calls and their results are included as far as they could be parsed. There is one
    /// assistant message per sampled turn, without special tokens.
    pub messages: Vec<Value>,
    /// The number of messages in the prompt.
    #[serde(rename = "asked")]
    pub prompt_messages: usize,
    /// The schemas of the tools that the model was shown, in OpenAI's form.
    pub tools: Vec<Value>,
    /// True if the text between the turns, or before the first turn, is known as tokens only. Messages of the user then hold the
    /// decoded text, including the words of the template.
    pub tokens_only: bool,
    /// The number of turns of the model.
    pub assistant_turns: usize,
    /// The number of turns of tools, users and environments.
    pub user_turns: usize,
    /// Every tool call, in order.
    pub calls: Vec<CallRecord>,
    /// The rewards of tools and environments, oldest first.
    pub rewards: Vec<TurnReward>,
    /// The score, from loops that score themselves; no reward function is called then.
    pub score: Option<f64>,
    /// Other values that the loop passes to reward functions, in `extra_info`.
    pub extra: Map<String, Value>,
    /// The number of texts that looked like calls and could not be parsed.
    pub unreadable_calls: usize,
    /// The number of calls beyond [`ConversationLimits::max_parallel_calls`](super::ConversationLimits), which were not run.
    pub dropped_calls: usize,
    /// Seconds that the conversation waited for tools, users and environments. Only time metrics may depend on this field.
    pub waited: f64,
}

impl Episode {
    /// Returns the number of turns as counted in verl: the messages after the prompt, plus one for the prompt.
    pub fn num_turns(&self) -> usize {
        self.assistant_turns + self.user_turns + 1
    }
}

/// The reason why a conversation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// The model responded without a tool call.
    Answer,
    /// The turn has text that looks like a call and cannot be parsed.
    UnreadableCall,
    /// The limit `multi_turn.max_assistant_turns` was reached.
    AssistantTurns,
    /// The limit `multi_turn.max_user_turns` was reached.
    UserTurns,
    /// The token limit of the response or of the model was reached.
    Length,
    /// The next message of a tool or user did not fit into the response, and was left out.
    ContextTooLong,
    /// The environment or the user ended the conversation.
    Done,
    /// The conversation exceeded `agent.conversation_timeout`.
    Timeout,
    /// The environment, the user or the loop failed.
    Failed,
}

impl EndReason {
    /// All reasons.
    pub const ALL: [Self; 9] = [
        Self::Answer,
        Self::UnreadableCall,
        Self::AssistantTurns,
        Self::UserTurns,
        Self::Length,
        Self::ContextTooLong,
        Self::Done,
        Self::Timeout,
        Self::Failed,
    ];

    /// Returns the name in metrics and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::UnreadableCall => "unreadable_call",
            Self::AssistantTurns => "assistant_turns",
            Self::UserTurns => "user_turns",
            Self::Length => "length",
            Self::ContextTooLong => "context_too_long",
            Self::Done => "done",
            Self::Timeout => "timeout",
            Self::Failed => "failed",
        }
    }
}

/// A tool call, with or without a result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    pub name: String,
    /// The reason why the call has no result of the tool; the model was given an error text.
    #[serde(rename = "trouble")]
    pub failure: Option<ReplyFailure>,
    /// True if the result was cut to `max_tool_response_length`.
    pub cut: bool,
    /// Duration in seconds. Only time metrics may depend on this field.
    pub seconds: f64,
}

/// The reason why a call has no result of its tool, or a participant no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyFailure {
    /// There is no tool of this name.
    UnknownTool,
    /// The arguments are not JSON.
    Arguments,
    /// The tool raised an error, or returned a value of the wrong type.
    Raised,
    /// The call took longer than `agent.call_timeout`.
    Timeout,
    /// The tool's process died.
    Died,
}

impl ReplyFailure {
    /// All reasons.
    pub const ALL: [Self; 5] = [Self::UnknownTool, Self::Arguments, Self::Raised, Self::Timeout, Self::Died];

    /// Returns the name in metrics and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::UnknownTool => "unknown_tool",
            Self::Arguments => "arguments",
            Self::Raised => "raised",
            Self::Timeout => "timeout",
            Self::Died => "died",
        }
    }
}

/// A reward that a tool, a user or an environment gave during a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnReward {
    /// The index in the response of the sampled token that earned the reward: the last token of its turn.
    pub at: usize,
    pub value: f64,
    /// True for a tool's reward (verl's `tool_rewards`), false for one of a user or an environment (`turn_scores`).
    pub of_tool: bool,
}
