//! Responses of a generation engine, and its progress.

use serde::{Deserialize, Serialize};

/// Reason why a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Finish {
    /// A stop token, or the token that completed a stop string. The response keeps either.
    Stop,
    /// The response reached `max_tokens` or the longest sequence of the engine.
    Length,
}

/// One sampled continuation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Response {
    pub ids: Vec<u32>,
    /// log π(token) under the sampling temperature, over the whole vocabulary, as training computes it. Forbidden tokens, filters
    /// and penalties do not change it.
    pub log_probs: Vec<f32>,
    /// log π(token) of generation, see [`Logprobs`](super::sampling::Logprobs); rollout correction compares it with training's.
    pub rollout_log_probs: Vec<f32>,
    pub finish: Finish,
}

impl Response {
    /// Creates a response without tokens: for a turn that did not fit, or was cancelled before its first token.
    pub fn empty() -> Self {
        Self { ids: Vec::new(), log_probs: Vec::new(), rollout_log_probs: Vec::new(), finish: Finish::Length }
    }
}

/// Progress of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GenerationProgress {
    pub finished: usize,
    pub total: usize,
    /// Number of tokens of all responses, including unfinished ones.
    pub tokens: usize,
}

/// A function that returns true if the last of some response tokens completes a stop string.
pub type Stops<'a> = &'a (dyn Fn(&[u32]) -> bool + Sync);
