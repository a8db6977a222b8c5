//! What a conversation leaves behind: the tokens that are trained on, and the record of what happened.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use burnish_rollout::Finish;

/// A conversation that has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Episode {
    /// The token ids of the prompt.
    pub prompt: Vec<u32>,
    /// The token ids of the response: what the model sampled, and what tools and users said between its turns.
    pub ids: Vec<u32>,
    /// For each id of the response, true if the model sampled it.
    pub sampled: Vec<bool>,
    /// [`Response::log_probs`](burnish_rollout::Response) of sampled tokens, 0 for the others.
    pub log_probs: Vec<f32>,
    /// [`Response::rollout_log_probs`](burnish_rollout::Response) of sampled tokens, 0 for the others.
    pub rollout_log_probs: Vec<f32>,
    /// [`Finish::Length`] if the last turn was cut off.
    pub finish: Finish,
    pub end: End,
    /// The conversation with the prompt's messages: what was said, calls and answers as well as they could be read.
    /// The assistant's messages are the sampled turns, one for each, without special tokens.
    pub messages: Vec<Value>,
    /// The number of messages that the prompt has.
    pub asked: usize,
    /// The schemas of the tools that the model was shown (OpenAI's form).
    pub tools: Vec<Value>,
    /// True if the text between the turns, or before the first, is known as tokens only. Messages of the user have this text then, with
    /// the words of the template.
    pub tokens_only: bool,
    /// Turns of the model.
    pub assistant_turns: usize,
    /// Turns of tools, users and environments.
    pub user_turns: usize,
    /// Every call of a tool, in order.
    pub calls: Vec<CallRecord>,
    /// Rewards of tools and environments, in the order in which they were earned.
    pub rewards: Vec<TurnReward>,
    /// The score, of loops that score themselves; no reward function is called then.
    pub score: Option<f64>,
    /// What the loop hands to reward functions beside that, in `extra_info`.
    pub extra: Map<String, Value>,
    /// Texts that looked like calls and could not be read.
    pub unreadable_calls: usize,
    /// Calls beyond [`Limits::max_parallel_calls`](super::Limits), which were not carried out.
    pub dropped_calls: usize,
    /// Seconds that the conversation waited for tools, users and environments. Beside metrics of time nothing may depend on it.
    pub waited: f64,
}

impl Episode {
    /// The number of messages after the prompt's, and one more for that, as verl counts turns.
    pub fn num_turns(&self) -> usize {
        self.assistant_turns + self.user_turns + 1
    }
}

/// The reason why a conversation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The model answered without a call.
    Answer,
    /// The turn has what looks like a call and cannot be read.
    UnreadableCall,
    /// `multi_turn.max_assistant_turns`.
    AssistantTurns,
    /// `multi_turn.max_user_turns`.
    UserTurns,
    /// The response reached its length, or the model's.
    Length,
    /// What a tool or a user said did not fit into the response any more, and was left out.
    ContextTooLong,
    /// The environment or the user ended it.
    Done,
    /// `agent.conversation_timeout`.
    Timeout,
    /// The environment, the user or the loop failed.
    Failed,
}

impl End {
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

    /// Its name in metrics and files.
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

/// A call that was carried out, or could not be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    pub name: String,
    /// The reason why there is no answer of the tool; the model was told.
    pub trouble: Option<Trouble>,
    /// True if the answer was cut to `max_tool_response_length`.
    pub cut: bool,
    /// Seconds. Beside metrics of time nothing may depend on it.
    pub seconds: f64,
}

/// The reason why a call has no answer of its tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trouble {
    /// No tool has this name.
    UnknownTool,
    /// The arguments are no JSON.
    Arguments,
    /// The tool raised an error, or returned what is no answer.
    Raised,
    /// It took longer than `agent.call_timeout`.
    Timeout,
    /// Its process died.
    Died,
}

impl Trouble {
    /// All reasons.
    pub const ALL: [Self; 5] = [Self::UnknownTool, Self::Arguments, Self::Raised, Self::Timeout, Self::Died];

    /// Its name in metrics and files.
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

/// A reward that a tool, a user or an environment gave within a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnReward {
    /// The index in the response of the sampled token that earned it: the last of its turn.
    pub at: usize,
    pub value: f64,
    /// True for a reward of a tool (verl's `tool_rewards`), false for that of a user or an environment (`turn_scores`).
    pub of_tool: bool,
}
