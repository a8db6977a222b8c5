//! Generation: prompts in, responses with the log-probabilities of their tokens out.
//!
//! Randomness is keyed: every response has a stream of its own and takes one uniform per token, so it does not depend on
//! its neighbours in the batch, nor on when it was admitted to it.

pub mod native;
pub mod sampling;

use anyhow::Result;

pub use native::NativeEngine;
pub use sampling::{Logprobs, Sampling};

use crate::model::CausalLm;
use crate::util::rng::Stream;

/// Why a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// A stop token, which the response keeps, or the token that completed a stop string, which it keeps too.
    Stop,
    /// `max_tokens`, or the longest sequence of the engine.
    Length,
}

/// One sampled continuation.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    pub ids: Vec<u32>,
    /// log π(token) under the sampling temperature, over the whole vocabulary: nothing that is kept from being drawn, and no
    /// penalty, changes it. What training computes.
    pub log_probs: Vec<f32>,
    /// log π(token) of generation, see [`Logprobs`]: what rollout correction compares training with.
    pub rollout_log_probs: Vec<f32>,
    pub finish: Finish,
}

/// What is done so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub finished: usize,
    pub total: usize,
    /// Tokens of all responses, the unfinished ones' included.
    pub tokens: usize,
}

/// Whether the last of some response tokens completes a stop string.
pub type Stops<'a> = &'a (dyn Fn(&[u32]) -> bool + Sync);

/// Takes a response and its place among all.
pub type Finished<'a> = &'a (dyn Fn(usize, &Response) + Sync);

/// What to generate.
pub struct Request<'a> {
    pub prompts: &'a [&'a [u32]],
    /// Responses per prompt.
    pub n: usize,
    pub sampling: Sampling,
    /// Token ids that end a response.
    pub eos: &'a [u32],
    pub stops: Option<Stops<'a>>,
    /// The stream of (prompt index, sample index).
    pub stream: &'a (dyn Fn(usize, usize) -> Stream + Sync),
    /// Given each response when it ends.
    pub finished: Option<Finished<'a>>,
    /// Told after every step.
    pub progress: Option<&'a (dyn Fn(Progress) + Sync)>,
}

/// A generation engine.
pub trait Engine {
    /// n responses per prompt, prompt after prompt: p0 s0, p0 s1, …, p1 s0, …
    fn generate(&mut self, model: &CausalLm, request: &Request) -> Result<Vec<Response>>;
}
