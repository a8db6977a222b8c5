//! `trainer serve`: a language model behind HTTP, by OpenAI's protocol.
//!
//! The engine has its own thread, and accepts requests while others decode (`hub::RequestHub`). `begin` turns a request into
//! sequences, `answering` turns sampled tokens into a reply, and `service` has the addresses. `agent::endpoint` has the protocol
//! and the record of served conversations.

mod answering;
mod begin;
mod by_status;
pub(crate) mod engine_thread;
mod hub;
mod metrics;
mod model;
mod page;
mod paths;
mod request_log;
mod server;
mod service;

pub(crate) use hub::{RequestHub, SequenceEvent};
pub(crate) use model::{CheckedModel, ModelOptions};
pub(crate) use server::{ModelServer, ServeOptions};
pub(crate) use service::{Facts, ServeState};
