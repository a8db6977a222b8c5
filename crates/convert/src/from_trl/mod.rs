//! `trainer from-trl`: converts a command line, a script or a YAML file of TRL to a recipe.
//!
//! The tables have the treatment of each option. The other modules compute settings that depend on several options, such as batch
//! sizes, schedule, losses and rewards, with the defaults of TRL's own dataclasses.

mod a2po;
mod batch;
mod common;
mod data;
mod distill;
mod find;
mod gold;
mod grpo;
mod iw_opd;
mod online_dpo;
mod optimizer;
mod original;
mod peer;
mod preference;
mod program;
mod rewards;
mod run;
mod self_distill;
mod sft;
mod stages;
mod table_distill;
mod table_model;
mod table_preference;
mod table_rl;
mod table_sft;
mod table_trainer;
mod teacher;

pub use peer::TRL;
