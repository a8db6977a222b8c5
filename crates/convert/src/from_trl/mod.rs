//! `trainer from-trl`: converts a command line, a script or a YAML file of TRL into a recipe.
//!
//! The tables have the treatment of each option; what several options decide together is computed beside them, from the defaults of
//! TRL's own dataclasses: batch sizes, schedule, losses, rewards.

mod batch;
mod common;
mod data;
mod distill;
mod find;
mod grpo;
mod online_dpo;
mod optimizer;
mod original;
mod peer;
mod preference;
mod rewards;
mod run;
mod sft;
mod stages;
mod table_model;
mod table_preference;
mod table_rl;
mod table_sft;
mod table_trainer;

pub use peer::TRL;
