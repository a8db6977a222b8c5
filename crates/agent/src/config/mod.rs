//! The files that name tools, servers of tools, simulated users and loops. They come as plain values, whoever has read them; the
//! names of classes stay text here.

mod entries;
mod loops;
mod servers;
mod tools;
mod users;

pub use entries::Wrong;
pub use loops::{LoopConfig, loops};
pub use servers::{Reach, ServerConfig, Transport, servers};
pub use tools::{McpConfig, ToolConfig, ToolKind, tools};
pub use users::{UserConfig, users};
