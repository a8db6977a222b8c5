//! Generation: prompts in, responses with the log-probabilities of their tokens out.
//!
//! Randomness is keyed: every response has a stream of its own and takes one uniform per token, so it does not depend on
//! its neighbours in the batch, nor on when it was admitted to it.

pub mod native;
pub mod sampling;

use anyhow::Result;

pub use native::{NativeEngine, PREFILL_TOKENS};
pub use sampling::Sampling;

use crate::model::CausalLm;
use crate::util::rng::Stream;

/// Why a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// An end-of-sequence token, which the response keeps.
    Stop,
    /// `max_tokens`.
    Length,
}

/// One sampled continuation.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    pub ids: Vec<u32>,
    /// log π(token) under the sampling temperature, over the whole vocabulary: top-k and top-p do not renormalise it.
    pub log_probs: Vec<f32>,
    pub finish: Finish,
}

/// What to generate.
pub struct Request<'a> {
    pub prompts: &'a [&'a [u32]],
    /// Responses per prompt.
    pub n: usize,
    pub sampling: Sampling,
    /// Token ids that end a response.
    pub eos: &'a [u32],
    /// The stream of (prompt index, sample index).
    pub stream: &'a (dyn Fn(usize, usize) -> Stream + Sync),
}

/// A generation engine.
pub trait Engine {
    /// n responses per prompt, prompt after prompt: p0 s0, p0 s1, …, p1 s0, …
    fn generate(&mut self, model: &CausalLm, request: &Request) -> Result<Vec<Response>>;
}
