//! `trainer serve-rm`: a reward model behind HTTP, by the protocol of OpenRLHF's `serve_rm`.
//!
//! The model has its own thread; each pass takes the texts of the waiting requests.

mod request;
mod scoring;
mod server;
mod service;
mod texts;

pub use request::queries;
pub use server::{RewardModelServer, ServeRmOptions};
