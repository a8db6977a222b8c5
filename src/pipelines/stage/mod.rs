//! The pipeline of every stage around reinforcement learning: rows become examples, and each step learns from a batch of them.
//!
//! A stage is an [`Objective`]: its settings, its examples, and the loss of a batch. The rest is the same for all of them and is
//! here: [`StageInputs`] are read and checked before the weights, [`start`] builds a run, [`dry_run()`] only describes it.

mod batch;
mod chat_keys;
mod choices;
#[cfg(test)]
pub mod cuts;
mod dry_run;
mod example;
mod facts;
mod inputs;
mod measured;
mod memory;
mod objective;
mod pipeline;
mod probe;
mod read;
mod settings;

pub use batch::{Measured, StageBatch};
pub use chat_keys::ChatKeys;
pub use choices::choices;
pub use dry_run::dry_run;
pub use example::StageExample;
pub use facts::facts;
pub use inputs::{RowFiles, StageInputs, decoder, hf_config};
pub use objective::Objective;
pub use pipeline::{Stage, start};
