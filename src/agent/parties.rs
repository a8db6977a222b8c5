//! The parties of a conversation beside the model and its tools: users and environments. What they do wrong is no error of the run: they
//! return [`Fault`].

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
