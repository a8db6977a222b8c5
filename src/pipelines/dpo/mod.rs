//! Preference optimisation: `trainer dpo`, for every loss of [`PREFERENCE_LOSSES`](burnish_algorithm::preference::PREFERENCE_LOSSES).
//!
//! | file | |
//! |---|---|
//! | `objective` | the stage |
//! | `loss` | the loss that the settings name |
//! | `rows`, `example` | rows from the settings of `data`; a row in tokens |
//! | `reference`, `stored` | the reference, and the file of its log-probabilities |
//! | `pass`, `evaluate` | the passes over a batch; the loss of the answers that they find |
//! | `mismatched` | KTO's z, of answers to other prompts |
//! | `tokens` | means over the tokens of answers |

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
