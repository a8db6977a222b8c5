//! Plain types of generation, without tensors: sampling parameters, responses, turns.

mod response;
mod sampling;
mod scores;
mod token_rules;
mod turns;

pub use response::{Finish, GenerationProgress, Response, Stops};
pub use sampling::{Logprobs, Sampling};
pub use scores::{TokenScores, TurnScores, WantedScores};
pub use token_rules::TokenRules;
pub use turns::{Arrival, TurnRequest, TurnSettings, TurnStops, Turns};
