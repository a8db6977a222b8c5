//! From a configuration to a run of reinforcement learning, or to the report of a dry run: names resolved, files read, mistakes
//! reported.

mod announce;
mod dry_run;
pub mod inputs;
mod memory_plan;
mod run_settings;
mod start;
mod unused_options;

pub use announce::announce;
pub use dry_run::dry_run;
pub use start::start;
