//! The trait of a generation engine, and its requests.

use anyhow::Result;

use burnish_model::CausalLm;
use burnish_rollout::{GenerationProgress, Response, Sampling, Stops, TokenRules, TurnSettings, Turns};
use burnish_util::rng::Stream;

/// A function that receives a response and its index among all responses.
pub type Finished<'a> = &'a (dyn Fn(usize, &Response) + Sync);

/// A request for responses.
pub struct GenerationRequest<'a> {
    pub prompts: &'a [&'a [u32]],
    /// Number of responses per prompt.
    pub n: usize,
    pub sampling: Sampling,
    /// Token ids that end a response.
    pub eos: &'a [u32],
    pub stops: Option<Stops<'a>>,
    /// Rules about single tokens. Every id must be below the model's `vocab_size`, and a token must be left after any response
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

    /// Samples arriving turns until no more will arrive.
    fn converse(&mut self, model: &CausalLm, settings: &TurnSettings, turns: &dyn Turns) -> Result<()>;
}
