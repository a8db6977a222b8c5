//! Preference optimisation: `trainer dpo`, for every loss of [`PREFERENCE_LOSSES`](burnish_algorithm::preference::PREFERENCE_LOSSES).
//!
//! | file | |
//! |---|---|
//! | `objective` | the stage |
//! | `loss` | the loss of the settings |
//! | `rows`, `example` | rows from the settings of `data`; a tokenized row |
//! | `reference`, `stored` | the reference, and the file of its log-probabilities |
//! | `pass`, `evaluate` | the passes over a batch; the loss of its responses |
//! | `mismatched` | KTO's z, from responses to other prompts |
//! | `tokens` | means over the tokens of responses |

mod evaluate;
mod example;
mod loss;
mod mismatched;
mod objective;
mod pass;
mod reference;
mod rows;
mod stored;
mod tokens;

pub use objective::{Dpo, choices};
