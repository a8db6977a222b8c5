//! `trainer from-openrlhf`: converts a command line or script of OpenRLHF to a recipe.
//!
//! It accepts both spellings of the options: underscores (up to 0.9) and today's dots. The tables have the treatment of each option.
//! The other modules compute settings that depend on several options, with the defaults of OpenRLHF's own parsers.

mod common;
mod data;
mod find;
mod loss;
mod optimizer;
mod peer;
mod preference;
mod reward;
mod run;
mod sft;
mod size;
mod table;
mod table_engine;
mod table_preference;

pub use peer::OPENRLHF;
