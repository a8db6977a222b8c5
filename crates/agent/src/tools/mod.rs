//! Tools: what a model may call. The tools of a conversation are a [`Toolbox`]; those of this program are in `built_in`, and
//! those of servers of the Model Context Protocol in `mcp`.

pub mod built_in;
pub mod joined;
pub mod mcp;
pub mod schema;
mod toolbox;
mod truncate;

pub use toolbox::{Answer, Call, Seen, Toolbox};
pub use truncate::truncated;
