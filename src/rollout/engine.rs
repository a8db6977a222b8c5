//! The trait of a generation engine, its requests and its responses.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::sampling::{Sampling, TokenRules};
use crate::model::CausalLm;
use crate::util::rng::Stream;

/// The reason why a response ended.
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
    /// log π(token) under the sampling temperature, over the whole vocabulary, as training computes it: forbidden tokens, filters
    /// and penalties do not change it.
    pub log_probs: Vec<f32>,
    /// log π(token) of generation, see [`Logprobs`](super::sampling::Logprobs): rollout correction compares training with it.
    pub rollout_log_probs: Vec<f32>,
    pub finish: Finish,
}

/// The progress of a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GenerationProgress {
    pub finished: usize,
    pub total: usize,
    /// The number of tokens of all responses, including unfinished ones.
    pub tokens: usize,
}

/// A function that returns true if the last of some response tokens completes a stop string.
pub type Stops<'a> = &'a (dyn Fn(&[u32]) -> bool + Sync);

/// A function that receives a response and its index among all responses.
pub type Finished<'a> = &'a (dyn Fn(usize, &Response) + Sync);

/// A request for responses.
pub struct GenerationRequest<'a> {
    pub prompts: &'a [&'a [u32]],
    /// The number of responses per prompt.
    pub n: usize,
    pub sampling: Sampling,
    /// Token ids that end a response.
    pub eos: &'a [u32],
    pub stops: Option<Stops<'a>>,
    /// Rules about single tokens. Every id is below the model's `vocab_size`, and a token is left after any response
    /// ([`TokenRules::leave_a_token`]).
    pub rules: Option<&'a TokenRules>,
    /// Returns the random stream of (prompt index, sample index).
    pub stream: &'a (dyn Fn(usize, usize) -> Stream + Sync),
    /// Called with each response when it ends.
    pub finished: Option<Finished<'a>>,
    /// Called after every step.
    pub progress: Option<&'a (dyn Fn(GenerationProgress) + Sync)>,
}

/// A generation engine.
pub trait Engine {
    /// Generates n responses per prompt, prompt after prompt: p0 s0, p0 s1, …, p1 s0, …
    fn generate(&mut self, model: &CausalLm, request: &GenerationRequest) -> Result<Vec<Response>>;
}
