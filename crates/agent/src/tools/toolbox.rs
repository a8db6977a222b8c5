//! The tools of a conversation: their calls, results, and view of the conversation.

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ReplyFailure;
use crate::calls::ToolCall;

/// The tools of one conversation.
pub trait Toolbox: Send {
    /// Returns the schemas in OpenAI's form, as the chat template gets them.
    fn schemas(&self) -> &[Value];

    /// Runs the calls of one turn concurrently, and returns their results in the order of the calls. The calls are checked: each
    /// name is in the schemas, and the arguments are JSON. Takes at most the time limit of one call.
    ///
    /// # Errors
    /// Errors that end the run, such as an interrupt.
    fn call(&mut self, calls: &[ValidCall], view: &ConversationView) -> Result<Vec<ToolResult>>;
}

/// A checked call to run.
#[derive(Clone, Debug)]
pub struct ValidCall {
    pub written: ToolCall,
    /// The arguments, usually an object.
    pub arguments: Value,
}

/// The view of a conversation that tools get (verl's `agent_data`).
#[derive(Clone, Copy, Debug)]
pub struct ConversationView<'a> {
    pub messages: &'a [Value],
    pub assistant_turns: usize,
    pub user_turns: usize,
    pub tool_rewards: &'a [f64],
    pub turn_scores: &'a [f64],
    pub prompt: &'a [u32],
    pub response: &'a [u32],
    pub sampled: &'a [bool],
}

impl ConversationView<'static> {
    /// An empty first turn, for calls of tools outside a conversation.
    pub const EMPTY: Self = Self {
        messages: &[],
        assistant_turns: 1,
        user_turns: 0,
        tool_rewards: &[],
        turn_scores: &[],
        prompt: &[],
        response: &[],
        sampled: &[],
    };
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The text for the model, not yet truncated.
    pub text: String,
    pub reward: Option<f64>,
    #[serde(rename = "trouble")]
    pub failure: Option<ReplyFailure>,
    pub seconds: f64,
    /// The tool's values for reward functions.
    pub extra: Map<String, Value>,
}
