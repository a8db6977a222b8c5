//! The agents of a run: tools, users and environments, started once, and the conversation that each row begins.

mod begin;
mod choices;
mod describe;
mod loop_config;
mod prompt_parts;
mod read;
mod rows;
mod server;
mod start;
mod unused_options;

pub use choices::choices;
pub use loop_config::custom_loop_config;
pub use read::files_crc;
pub use rows::check_single_turns;
pub use start::{AgentSettings, Agents, EndpointSettings};
pub use unused_options::of_conversations;
