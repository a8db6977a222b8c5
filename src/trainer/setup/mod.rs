//! From a configuration to a run of reinforcement learning, or to the report of a dry run: names resolved, files read, mistakes
//! reported.

mod announce;
mod dry_run;
mod facts;
mod facts_of_rows;
pub mod inputs;
mod lengthened;
mod measured;
mod memory_plan;
mod run_settings;
mod samples;
mod start;
mod unused_options;

pub use announce::announce;
pub use dry_run::dry_run;
pub use facts::facts;
pub use start::start;
