//! Servers of the Model Context Protocol, whose tools conversations call (verl's tools of type mcp).
//!
//! Each server is started, or connected to, once for all conversations (`server`). Concurrent calls share one connection; message
//! ids tell them apart (`message`, `pending`). There are three transports (`transport`): a program's input and output (`stdio`,
//! `process`), HTTP POST (`http`), and HTTP with one stream of replies (`sse`). The last two read event streams (`events`) of an
//! `http_endpoint`. The server's tools become tools like the built-in ones (`server_tools`, `text`).
//!
//! Source: the specification of the protocol, versions 2024-11-05 to 2025-11-25 (modelcontextprotocol.io). The client offers
//! servers nothing: no files, no requests to the model or the user.

mod error;
mod events;
mod http;
mod http_endpoint;
mod message;
mod pending;
mod process;
mod rate_limit;
mod server;
mod server_tools;
mod sse;
mod stdio;
mod text;
mod transport;

pub use events::{Events, ServerSentEvent};
pub use message::{Incoming, incoming};
pub use server::McpOptions;
pub use server_tools::server_tools;
