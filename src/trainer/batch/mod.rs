//! The batch of a step: its columns and scores, and the checks and changes between phases.

pub(super) mod columns;
mod data;
mod echo;
pub(super) mod nonfinite;
pub(super) mod post_processing;
mod scores;
pub(super) mod turn_rewards;

pub(super) use data::Batch;
#[cfg(test)]
pub(super) use data::tests;
