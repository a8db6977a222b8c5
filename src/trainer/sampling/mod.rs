//! The sampling side of a step: prompts in, scored responses out; and validation, which does the same with other prompts.

pub(crate) mod discarded;
mod generate;
mod majority;
mod prompt_values;
mod recorded;
mod reported;
mod reward_metrics;
pub mod reward_model;
mod sample;
pub mod samples;
mod score;
pub mod scoring;
mod side;
mod transcript_text;
pub mod val_metrics;
mod validate;

pub use reported::ReportedNames;
pub use side::{SamplingSide, crc_of};
