//! What every kind of conversation is: a state that asks for turns, and an episode at its end.

use anyhow::Result;

use super::super::Episode;
use crate::rollout::Response;

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
}
