//! The participants of a conversation other than the model and its tools: simulated users, environments, and custom loops. Their
//! failures do not end the run: they return [`PartyError`].

use anyhow::Result;
use serde_json::{Map, Value};

use super::ReplyFailure;
use super::tools::ConversationView;

/// A participant that failed, timed out, or died; its state is lost then.
#[derive(Clone, Debug, PartialEq)]
pub struct PartyError {
    pub failure: ReplyFailure,
    /// One line for people: what failed, and where.
    pub message: String,
    pub seconds: f64,
}

/// The outcome of a call to a participant. The outer error ends the run, such as an interrupt. The inner error is the
/// participant's own and fails only its conversation.
pub type Outcome<T> = Result<Result<T, PartyError>>;

/// A simulated user (verl's interactions).
pub trait User: Send {
    /// Replies to the conversation so far.
    ///
    /// # Errors
    /// Errors that end the run, such as an interrupt.
    fn respond(&mut self, view: &ConversationView) -> Outcome<UserReply>;
}

/// A reply of a simulated user.
#[derive(Clone, Debug, PartialEq)]
pub struct UserReply {
    pub text: String,
    /// True if the reply ends the conversation; its text is not appended then.
    pub ends: bool,
    pub score: Option<f64>,
    pub seconds: f64,
}

/// A text environment (OpenRLHF's agent instances); its feedback is appended verbatim.
pub trait TextEnvironment: Send {
    /// Begins an episode; returns the prompt's text as the environment changed it.
    ///
    /// # Errors
    /// Errors that end the run, such as an interrupt.
    fn reset(&mut self, observation: &str, label: &Value) -> Outcome<String>;

    /// Passes the model's turn to the environment; `observation` is all text before that turn.
    ///
    /// # Errors
    /// Errors that end the run, such as an interrupt.
    fn step(&mut self, observation: &str, action: &str) -> Outcome<EnvironmentStep>;
}

/// The result of one step of a text environment.
#[derive(Clone, Debug, PartialEq)]
pub struct EnvironmentStep {
    pub reward: f64,
    /// The score, which replaces the sum of rewards.
    pub score: Option<f64>,
    pub feedback: String,
    pub done: bool,
    /// The token limit of the next turn, if the environment sets one.
    pub max_tokens: Option<usize>,
    /// Values for metrics.
    pub extra: Map<String, Value>,
    pub seconds: f64,
}

/// A custom agent loop (verl's agent loops). It leads a conversation: it requests turns of the model and tokens until it is done.
pub trait LoopCode: Send {
    /// Starts the loop, or passes the reply to its last request; returns its next request. A reply `{"error": TEXT}` raises an
    /// error in the loop.
    ///
    /// # Errors
    /// Errors that end the run, such as an interrupt.
    fn resume(&mut self, answer: Option<Value>) -> Outcome<LoopRequest>;
}

/// A request of a custom loop.
#[derive(Clone, Debug, PartialEq)]
pub enum LoopRequest {
    /// A turn of the model that follows these ids, with sampling parameters in vLLM's names.
    Turn { ids: Vec<u32>, params: Map<String, Value> },
    /// An operation of the tokenizer or the chat template, see `TokenService`.
    Tokens(Value),
    /// The loop is done.
    Done(LoopOutput),
}

/// The result of a custom loop (verl's `AgentLoopOutput`).
#[derive(Clone, Debug, PartialEq)]
pub struct LoopOutput {
    pub prompt: Vec<u32>,
    /// The token ids of the response.
    pub ids: Vec<u32>,
    /// For each id of the response, true if it is trained; the model must have sampled it.
    pub mask: Vec<bool>,
    /// The score, from loops that score themselves.
    pub score: Option<f64>,
    /// The number of turns; `None` if the loop did not count them.
    pub num_turns: Option<usize>,
    /// The loop's values for reward functions (`extra_fields`).
    pub extra: Map<String, Value>,
}
