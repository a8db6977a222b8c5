//! Supervised fine-tuning: `trainer sft`. The loss is the mean of a token loss over the trained tokens of the whole batch, as in
//! verl, TRL and OpenRLHF.

mod example;
mod objective;
mod rows;

pub(super) use example::{total_weight, weights};
pub use objective::{Sft, choices};
pub(super) use rows::{read, read_for_two, unused_options};
