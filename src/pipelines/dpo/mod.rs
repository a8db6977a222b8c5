//! Preference optimisation: `trainer dpo`, for every loss of [`PREFERENCE_LOSSES`](crate::algorithm::preference::PREFERENCE_LOSSES).
//!
//! | file | |
//! |---|---|
//! | `objective` | the stage |
//! | `loss` | the loss that the settings name |
//! | `rows`, `example` | rows from the settings of `data`; a row in tokens |
//! | `reference`, `stored` | the reference, and the file of its log-probabilities |
//! | `pairs`, `labelled` | the loss of a batch of each |
//! | `mismatched` | KTO's z, of answers to other prompts |
//! | `tokens` | means over the tokens of answers |

mod example;
mod labelled;
mod loss;
mod mismatched;
mod objective;
mod pairs;
mod reference;
mod rows;
mod stored;
mod tokens;

pub use objective::{Dpo, choices};
