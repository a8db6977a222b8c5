//! The interface of every kind of conversation: a state machine that requests turns and ends with an episode.

use std::fmt;
use std::sync::Arc;

use anyhow::Result;

use super::super::Episode;
use burnish_rollout::{Response, Sampling, TurnStops};

/// The state of one conversation.
///
/// The driver first calls [`next`](Self::next) without a turn. It samples the turn that [`NextAction::Generate`] requests and
/// calls `next` with it, until `next` returns [`NextAction::End`]. Then it calls [`finish`](Self::finish) once.
pub trait AgentLoop: Send {
    /// Takes the sampled turn and returns the next action. Blocks while tools, users or environments work, within the time limits
    /// of [`ConversationLimits`](super::super::ConversationLimits).
    ///
    /// # Errors
    /// Errors that end the run: an interrupt, a template that fails. Failures of a tool or an environment are not errors here:
    /// the model gets an error text, or the conversation ends.
    fn next(&mut self, turn: Option<Response>) -> Result<NextAction>;

    /// Returns the episode, after the end.
    fn finish(self: Box<Self>) -> Episode;
}

/// The next action of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub enum NextAction {
    Generate(SampleRequest),
    End,
}

/// A request to sample a turn.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleRequest {
    /// All token ids so far, including the prompt. The engine reuses its cached keys and values for the known prefix.
    pub ids: Vec<u32>,
    /// The token limit of the turn, at least 1.
    pub max_tokens: usize,
    /// Sampling settings of this turn, if they differ from the run's settings; their `max_tokens` is ignored.
    pub sampling: Option<Sampling>,
    /// Stop conditions of this turn, in addition to the stop conditions of the run.
    pub stops: Option<StopCondition>,
    /// The number of the turn's random stream within its conversation; `None` for the number of turns before it. For
    /// conversations whose turns have no fixed order.
    pub stream_number: Option<usize>,
}

impl SampleRequest {
    /// Creates a request with the sampling settings and stop conditions of the run.
    pub fn new(ids: Vec<u32>, max_tokens: usize) -> Self {
        Self { ids, max_tokens, sampling: None, stops: None, stream_number: None }
    }
}

/// A stop condition; equal to another if both are the same function.
#[derive(Clone)]
pub struct StopCondition(pub TurnStops);

impl fmt::Debug for StopCondition {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("AskStops")
    }
}

impl PartialEq for StopCondition {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
