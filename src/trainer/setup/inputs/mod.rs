//! The inputs of a run of reinforcement learning, read and checked before its models: batch plan, tokenizer, prompts, rewards,
//! number of steps.

mod model;
mod prompts;
mod read;
mod schedule;
mod scorers;

pub use model::hf_config;
pub use read::TrainerInputs;
pub(in crate::trainer::setup) use read::note_missing_rows;
