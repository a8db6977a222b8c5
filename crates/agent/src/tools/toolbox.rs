//! The tools of a conversation: what they are asked, what they may see of it, and what they answer.

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Trouble;
use crate::calls::ToolCall;

/// The tools of one conversation.
pub trait Toolbox: Send {
    /// The schemas in OpenAI's form, as the chat template gets them.
    fn schemas(&self) -> &[Value];

    /// Carries out the calls of one turn at the same time, and returns their answers in the order of the calls. Names and arguments have been
    /// checked: the name is one of the schemas', the arguments are JSON. Takes at most the time of a call.
    ///
    /// # Errors
    /// What ends the run, such as an interrupt.
    fn call(&mut self, calls: &[Call], seen: &Seen) -> Result<Vec<Answer>>;
}

/// A call to carry out.
#[derive(Clone, Debug)]
pub struct Call {
    pub written: ToolCall,
    /// The arguments, usually an object.
    pub arguments: Value,
}

/// What a tool may see of its conversation (verl's `agent_data`).
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    pub messages: &'a [Value],
    pub assistant_turns: usize,
    pub user_turns: usize,
    pub tool_rewards: &'a [f64],
    pub turn_scores: &'a [f64],
    pub prompt: &'a [u32],
    pub response: &'a [u32],
    pub sampled: &'a [bool],
}

impl Seen<'static> {
    /// A first turn of which nothing is known, for whoever calls tools outside a conversation.
    pub const NOTHING: Self = Self {
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

/// The answer to a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// What the model is told, not yet cut.
    pub text: String,
    pub reward: Option<f64>,
    pub trouble: Option<Trouble>,
    pub seconds: f64,
    /// What the tool leaves for reward functions.
    pub extra: Map<String, Value>,
}
