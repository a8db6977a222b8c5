//! Servers of the Model Context Protocol, whose tools conversations call (verl's tools of the type mcp).
//!
//! A server is started, or connected to, once for all conversations (`server`): their calls go over one link at the same time,
//! told apart by the numbers of their messages (`message`, `waiting`). A link is a program's input and output (`stdio`,
//! `process`), an address that takes messages by POST (`http`), or one with a stream of answers (`sse`), both of which read event
//! streams (`events`) of a `site`. What a server offers becomes tools like those of this program (`offered`, `text`).
//!
//! Source: the specification of the protocol, versions 2024-11-05 to 2025-11-25 (modelcontextprotocol.io). Nothing is offered to
//! servers: no files, no questions to the model or to the user.

mod events;
mod failure;
mod http;
mod link;
mod message;
mod offered;
mod process;
mod rate;
mod server;
mod site;
mod sse;
mod stdio;
mod text;
mod waiting;

pub use events::{Event, Events};
pub use message::{Incoming, incoming};
pub use offered::offered;
pub use server::Options;
