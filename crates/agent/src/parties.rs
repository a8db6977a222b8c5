//! The parties of a conversation beside the model and its tools: users, environments, and loops of the user's own. What they do
//! wrong is no error of the run: they return [`Fault`].

use anyhow::Result;
use serde_json::{Map, Value};

use super::Trouble;
use super::tools::Seen;

/// A party that failed, took too long, or died; its state is lost then.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    pub trouble: Trouble,
    /// One line for people: what happened, and where.
    pub message: String,
    pub seconds: f64,
}

/// A simulated user (verl's interactions).
pub trait User: Send {
    /// Answers the conversation so far.
    ///
    /// # Errors
    /// What ends the run, such as an interrupt.
    fn respond(&mut self, seen: &Seen) -> Result<Result<Reply, Fault>>;
}

/// What a simulated user says.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    pub text: String,
    /// True if this ends the conversation; the text is not appended then.
    pub ends: bool,
    pub score: Option<f64>,
    pub seconds: f64,
}

/// An environment of texts (OpenRLHF's agent instances): what it says is appended as it is.
pub trait TextEnvironment: Send {
    /// Begins an episode; returns the prompt's text as the environment changes it.
    ///
    /// # Errors
    /// What ends the run, such as an interrupt.
    fn reset(&mut self, observation: &str, label: &Value) -> Result<Result<String, Fault>>;

    /// Takes what the model wrote, behind all text so far.
    ///
    /// # Errors
    /// What ends the run, such as an interrupt.
    fn step(&mut self, observation: &str, action: &str) -> Result<Result<Step, Fault>>;
}

/// What an environment of texts answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub reward: f64,
    /// The score that stands in place of the sum of rewards.
    pub score: Option<f64>,
    pub feedback: String,
    pub done: bool,
    /// The most tokens of the next turn, if the environment changes it.
    pub max_tokens: Option<usize>,
    /// Numbers for metrics.
    pub extra: Map<String, Value>,
    pub seconds: f64,
}

/// A loop of the user's own (verl's agent loops), which leads a conversation: it asks for turns of the model and for tokens,
/// until it is done.
pub trait OwnLoop: Send {
    /// Begins, or takes the answer to what was wanted, and returns what is wanted next. An answer `{"error": TEXT}` is an error
    /// to it.
    ///
    /// # Errors
    /// What ends the run, such as an interrupt.
    fn go_on(&mut self, answer: Option<Value>) -> Result<Result<Wanted, Fault>>;
}

/// What a loop of the user's own wants next.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    /// A turn of the model behind these ids, sampled by these parameters in vLLM's names.
    Turn { ids: Vec<u32>, params: Map<String, Value> },
    /// What the tokenizer or the chat template says, see [`Tokens`](super::loops::Tokens).
    Tokens(Value),
    /// Nothing more.
    Done(Output),
}

/// What a loop of the user's own makes of its conversation (verl's `AgentLoopOutput`).
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    pub prompt: Vec<u32>,
    /// The ids of the response.
    pub ids: Vec<u32>,
    /// For each id of the response, true if it is to be trained: the model sampled it.
    pub mask: Vec<bool>,
    /// The score, from loops that score themselves.
    pub score: Option<f64>,
    /// The number of turns; `None` if the loop did not count them.
    pub num_turns: Option<usize>,
    /// What the loop leaves for reward functions (`extra_fields`).
    pub extra: Map<String, Value>,
}
