//! Sequences of several turns. The engine samples a turn of a sequence, returns it, and keeps the keys and values until the next
//! turn arrives or the sequence is over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::response::{GenerationProgress, Response, Stops};
use super::sampling::Sampling;
use super::scores::{TurnScores, WantedScores};
use super::token_rules::TokenRules;
use burnish_util::rng::Stream;

/// A source of turns, which receives the sampled turns.
pub trait Turns: Sync {
    /// Receives the number of turns that are sampled, before each step and when the engine is idle. Must not block.
    fn running(&self, _count: usize) {}

    /// Receives the scores of a turn that asked for some, just before the turn ends. Must not block.
    fn scored(&self, _sequence: usize, _scores: TurnScores) {}

    /// Receives a turn of a sequence. The engine waits for the call to return, so it must not block.
    fn ended(&self, sequence: usize, turn: Response);

    /// Returns the arrivals since the last call; `None` once every sequence is over, or if the engine's call is to end when the
    /// current turns do. With `wait`, the engine is idle, and the call may block until an arrival. It may also return no turn,
    /// and is then called again.
    fn arrived(&self, wait: bool) -> Option<Vec<Arrival>>;
}

/// An event of a sequence. New sequences with equal tokens that arrive one after another share their prefill.
#[derive(Clone)]
pub struct Arrival {
    /// Number that identifies the sequence; a number that was not used before begins a sequence.
    pub sequence: usize,
    /// Turn to sample, or `None` if the sequence is over.
    pub turn: Option<TurnRequest>,
}

/// A function of one turn that returns true if the last of some response tokens ends it.
pub type TurnStops = Arc<dyn Fn(&[u32]) -> bool + Send + Sync>;

/// A turn to sample.
#[derive(Clone)]
pub struct TurnRequest {
    /// All tokens of the sequence so far, at least one. The prefix that it shares with the sequence's last turn is not computed
    /// again.
    pub ids: Arc<[u32]>,
    /// Sampling parameters. A turn with `max_tokens` 0 samples nothing and ends after its prompt is scored.
    pub sampling: Sampling,
    /// Scores for [`Turns::scored`].
    pub scores: WantedScores,
    /// Random stream of the turn; each token takes one number of it.
    pub stream: Stream,
    /// A function that ends the turn, in addition to the function of the engine's call.
    pub stops: Option<TurnStops>,
    /// Set once the turn is not awaited any more: the engine then ends it before its next token, before all other conditions.
    pub cancelled: Option<Arc<AtomicBool>>,
}

impl TurnRequest {
    /// Returns true once the turn is not awaited any more.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.as_ref().is_some_and(|cancelled| cancelled.load(Ordering::Relaxed))
    }
}

/// Settings that all turns of a call of the engine have in common.
#[derive(Clone, Copy)]
pub struct TurnSettings<'a> {
    /// Token ids that end a turn.
    pub eos: &'a [u32],
    pub stops: Option<Stops<'a>>,
    /// Rules about single tokens, see `GenerationRequest::rules`.
    pub rules: Option<&'a TokenRules>,
    /// Called after every step.
    pub progress: Option<&'a (dyn Fn(GenerationProgress) + Sync)>,
    /// Called with the sequence and every token that was drawn.
    pub token: Option<&'a (dyn Fn(usize, u32) + Sync)>,
}
