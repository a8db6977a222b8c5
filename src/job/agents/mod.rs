//! The agents of a run: the tools, users and environments that its settings name, started once, and the conversation that each row begins.

mod begin;
mod describe;
mod rows;
mod start;

pub use start::Agents;
