//! The batch of a step: its columns and scores, and the checks and changes between phases.

pub mod columns;
mod data;
pub mod nonfinite;
pub mod post_processing;
mod scores;
pub mod turn_rewards;

pub use data::Batch;
#[cfg(test)]
pub use data::tests;
