//! The command line. Without a subcommand it trains by reinforcement learning.
//!
//! Each subcommand is one file here with its arguments and `run`. A new subcommand needs its module here, and its variant and match
//! arm in `command.rs`.

mod args;
mod chat;
mod command;
mod completions;
mod config;
mod conversion;
mod data;
mod data_select;
mod devices;
mod doctor;
mod dry_run_arg;
mod error;
mod eval;
mod examples;
mod exit_codes;
mod export;
mod fetch;
mod from_openrlhf;
mod from_peer;
mod from_trl;
mod from_verl;
mod generate;
#[cfg(test)]
mod help_tests;
mod in_sweep;
mod json;
mod kinds;
mod listening;
mod man;
mod mistyped;
mod multirun;
mod print;
mod recipes;
mod recognise;
mod replay;
mod report;
mod report_page;
mod report_sweep;
mod reward;
mod run_source;
mod runs;
mod saved_recipe;
mod self_check;
mod serve;
mod serve_rm;
mod stage;
mod together;
mod train;
mod variant;
mod version;
mod welcome;

pub use args::ConfigArgs;
pub use command::{Cli, check_command, parse, run};
pub use error::CliError;
pub use exit_codes::EXIT_CODES;
pub use json::{LISTINGS, Listing, NOT_LISTING};
pub use kinds::choices;
pub use variant::become_variant;
pub use version::long_version;
