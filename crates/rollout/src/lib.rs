//! The plain types of generation: sampling parameters, responses, turns. No tensor is needed to speak of them.

mod response;
mod sampling;
mod token_rules;
mod turns;

pub use response::{Finish, GenerationProgress, Response, Stops};
pub use sampling::{Logprobs, Sampling};
pub use token_rules::TokenRules;
pub use turns::{Arrival, TurnRequest, TurnSettings, TurnStops, Turns};
