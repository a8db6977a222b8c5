//! The agents of a run: the tools, users and environments that its settings name, started once, and the conversation that each row begins.

mod begin;
mod choices;
mod describe;
mod read;
mod rows;
mod seen;
mod server;
mod start;
mod unused_options;
mod written;

pub use choices::choices;
pub use read::files_crc;
pub use rows::check_single_turns;
pub use seen::seen_by_own;
pub use start::{AgentSettings, Agents, EndpointSettings};
pub use unused_options::of_conversations;
