//! The HTTP server under every command that listens: `serve`, `serve-rm` and `report --watch`.
//!
//! A command brings a [`Site`], which knows its addresses and their answers. Everything that protects the process is here, once:
//! time to send a request, the number of connections, bytes of all requests together, who may ask, malformed requests, clients
//! that leave or never read, and an end within a second. hyper reads and writes HTTP; its own server loop has no such bounds.

mod bearer;
mod body;
mod connection;
mod hosts;
mod limits;
mod refusal;
mod request;
mod serve;
mod site;
mod wire;

pub use bearer::Bearer;
pub use body::Body;
pub use hosts::Hosts;
pub use limits::Limits;
pub use refusal::{HttpResponse, Refusal, json_response};
pub use serve::serve;
pub use site::Site;
