//! `trainer serve`: a language model behind HTTP, by OpenAI's protocol.
//!
//! The engine has its own thread, and accepts requests while others decode ([`hub::Hub`]). `begin` turns a request into sequences,
//! `answering` turns sampled tokens into a reply, and `service` has the addresses. `agent::endpoint` has the protocol and the record of
//! served conversations.

mod answering;
mod begin;
mod hub;
mod server;
mod service;

pub use hub::{Event, Hub, Ticket};
pub use server::{Server, ServerOptions};
pub use service::{Facts, Service};
