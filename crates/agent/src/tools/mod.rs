//! The tools that a model may call. Each conversation has a [`Toolbox`]; built-in tools are in `built_in`, tools of Model Context
//! Protocol servers in `mcp`.

pub mod built_in;
pub mod joined;
pub mod mcp;
pub mod schema;
mod toolbox;
mod truncate;

pub use toolbox::{ConversationView, ToolResult, Toolbox, ValidCall};
pub use truncate::truncated;
