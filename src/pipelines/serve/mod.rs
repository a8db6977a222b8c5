//! `trainer serve`: a language model behind HTTP, by OpenAI's protocol.
//!
//! The engine has a thread of its own, and takes requests in while others decode ([`hub::Hub`]); `begin` turns a request into sequences,
//! `answering` what is sampled into an answer, `service` has the addresses. `agent::endpoint` has the protocol, and the record of what was
//! served.

mod answering;
mod begin;
mod hub;
mod server;
mod service;

pub use hub::{Event, Hub, Ticket};
pub use server::{Server, ServerOptions};
pub use service::{Facts, Service};
