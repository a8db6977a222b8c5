//! The YAML files that name tools, simulated users and loops. They come as plain values, whoever has read them; the names of classes
//! stay text here.

mod entries;
mod loops;
mod tools;
mod users;

pub use entries::Wrong;
pub use loops::{LoopConfig, loops};
pub use tools::{McpConfig, ToolConfig, ToolKind, tools};
pub use users::{UserConfig, users};
