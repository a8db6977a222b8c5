//! The files that list tools, tool servers, simulated users and loops. They are passed as plain values; class names stay text
//! here.

mod entries;
mod loops;
mod servers;
mod tools;
mod users;

pub use entries::ConfigFileError;
pub use loops::{LoopConfig, loops};
pub use servers::{HttpTransport, McpServerConfig, ServerAddress, servers};
pub use tools::{McpConfig, ToolConfig, ToolKind, tools};
pub use users::{UserConfig, users};
