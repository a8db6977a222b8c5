//! Generation: takes prompts, and returns responses with the log-probabilities of their tokens.
//!
//! Randomness is keyed: every response has a random stream of its own and takes one uniform number per token, so it depends
//! neither on its neighbours in the batch nor on when it joined the batch.

pub mod native;
pub mod sampling;

mod engine;
mod response;
mod turns;

pub use engine::{Engine, Finished, GenerationRequest};
pub use native::NativeEngine;
pub use response::{Finish, GenerationProgress, Response, Stops};
pub use sampling::{Logprobs, Sampling, TokenRules};
pub use turns::{Arrival, TurnRequest, TurnSettings, TurnStops, Turns};
