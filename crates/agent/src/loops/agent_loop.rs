//! What every kind of conversation is: a state that asks for turns, and an episode at its end.

use std::fmt;
use std::sync::Arc;

use anyhow::Result;

use super::super::Episode;
use burnish_rollout::{Response, Sampling, TurnStops};

/// The state of one conversation.
///
/// Whoever drives it calls [`next`](Self::next) without a turn first, has the model sample what [`Next::Generate`] asks for, calls it with that
/// turn, and so on until [`Next::End`]; then [`finish`](Self::finish), once.
pub trait AgentLoop: Send {
    /// Takes the turn that was sampled, and says what comes next. It blocks while tools, users or environments are at work, within the times
    /// of [`Limits`](super::super::Limits).
    ///
    /// # Errors
    /// What ends the run: an interrupt, a template that fails. What a tool or an environment does wrong is no error: it is told to the
    /// model, or ends the conversation.
    fn next(&mut self, turn: Option<Response>) -> Result<Next>;

    /// The conversation, after its end.
    fn finish(self: Box<Self>) -> Episode;
}

/// What a conversation does next.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    Generate(Ask),
    End,
}

/// A turn to sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// All tokens so far, the prompt's too. The engine keeps the keys and values of the part that it knows already.
    pub ids: Vec<u32>,
    /// The number of tokens that the turn may have, at least 1.
    pub max_tokens: usize,
    /// How the turn is sampled, where that is not as all other turns of the run are; `max_tokens` in it is not read.
    pub sampling: Option<Sampling>,
    /// What ends the turn, beside what ends every turn of the run.
    pub stops: Option<AskStops>,
    /// The number that tells the turn's random numbers from those of the conversation's other turns; `None` for the number of
    /// turns before. It is for conversations whose turns have no order of their own.
    pub draws: Option<usize>,
}

impl Ask {
    /// A turn that is sampled and ends as every turn of the run.
    pub fn new(ids: Vec<u32>, max_tokens: usize) -> Self {
        Self { ids, max_tokens, sampling: None, stops: None, draws: None }
    }
}

/// What ends a turn; equal if it is the same function.
#[derive(Clone)]
pub struct AskStops(pub TurnStops);

impl fmt::Debug for AskStops {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("AskStops")
    }
}

impl PartialEq for AskStops {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
