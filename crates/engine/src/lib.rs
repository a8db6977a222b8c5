//! Generation on burnish's own model: prompts in, responses with the log-probabilities of their tokens out.
//!
//! Randomness is keyed: every response has a separate random stream and takes one uniform number per token. A response therefore
//! depends neither on its neighbours in the batch nor on the step at which it joined the batch.

pub mod native;
pub mod sampling;

mod engine;

pub use engine::{Engine, Finished, GenerationRequest};
pub use native::NativeEngine;
