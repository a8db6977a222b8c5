//! Sequences that go on: the engine samples a turn of a sequence, hands it over, and keeps its keys and values until it hears how the
//! sequence goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::response::{GenerationProgress, Response, Stops};
use super::sampling::Sampling;
use super::token_rules::TokenRules;
use burnish_util::rng::Stream;

/// A source of turns, which hears of those that were sampled.
pub trait Turns: Sync {
    /// Takes a turn of a sequence. The engine waits for it to return, so it must not block.
    fn ended(&self, sequence: usize, turn: Response);

    /// What came in since the last call; `None` once every sequence is over, or if the call is to end as soon as the turns that are
    /// being sampled do. With `wait` the engine has nothing to do, and the call
    /// may block until something comes; it may return nothing, and is called again then.
    fn arrived(&self, wait: bool) -> Option<Vec<Arrival>>;
}

/// News of a sequence. Sequences with equal tokens that arrive one after another as new ones share the work on them.
#[derive(Clone)]
pub struct Arrival {
    /// The number by which the sequence is known: a number that was not used before begins a sequence.
    pub sequence: usize,
    /// The turn to sample, or `None` if the sequence is over.
    pub turn: Option<TurnRequest>,
}

/// A function of a turn's own that returns true if the last of some response tokens ends it.
pub type TurnStops = Arc<dyn Fn(&[u32]) -> bool + Send + Sync>;

/// A turn to sample.
#[derive(Clone)]
pub struct TurnRequest {
    /// All tokens of the sequence so far, at least one. As many as it shares with the sequence's last turn are not worked on again.
    pub ids: Arc<[u32]>,
    pub sampling: Sampling,
    /// The random stream of the turn, of which each token takes one number.
    pub stream: Stream,
    /// A function that ends the turn, beside that of the engine's call.
    pub stops: Option<TurnStops>,
    /// Set once nobody waits for the turn any more: the engine then ends it before its next token, whatever else it asks for.
    pub cancelled: Option<Arc<AtomicBool>>,
}

impl TurnRequest {
    /// True once nobody waits for the turn any more.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.as_ref().is_some_and(|cancelled| cancelled.load(Ordering::Relaxed))
    }
}

/// What all turns of a call of the engine have in common.
#[derive(Clone, Copy)]
pub struct TurnSettings<'a> {
    /// Token ids that end a turn.
    pub eos: &'a [u32],
    pub stops: Option<Stops<'a>>,
    /// Rules about single tokens, see [`GenerationRequest::rules`](super::GenerationRequest).
    pub rules: Option<&'a TokenRules>,
    /// Called after every step.
    pub progress: Option<&'a (dyn Fn(GenerationProgress) + Sync)>,
    /// Called with the sequence and every token that was drawn.
    pub token: Option<&'a (dyn Fn(usize, u32) + Sync)>,
}
