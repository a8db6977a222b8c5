//! `trainer from-openrlhf`: converts a command line or script of OpenRLHF into a recipe.
//!
//! Both spellings of its options are read: underscores, to 0.9, and today's dots. The tables have the treatment of each option; what
//! several decide together is computed beside them, from the defaults of OpenRLHF's own parsers.

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
