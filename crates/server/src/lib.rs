//! The HTTP server of every command that listens: `serve`, `serve-rm` and `report --watch`.
//!
//! A command supplies a [`Handler`] for its paths. This crate protects the process: it limits the time of a request, the number
//! of connections and the total bytes of all requests; checks hosts; handles malformed requests and clients that leave or never
//! read; and stops within a second. hyper reads and writes HTTP; its own server loop has no such limits.

mod activity;
mod bearer;
mod body;
mod bound;
mod connection;
mod cors;
mod handler;
mod hosts;
mod http_error;
mod limits;
mod methods;
mod pieces;
mod request;
mod serve;
mod wire;
mod workers;

pub use bearer::Bearer;
pub use body::ResponseBody;
pub use bound::{BoundServer, ListenOptions};
pub use cors::CorsOrigins;
pub use handler::Handler;
pub use hosts::Hosts;
pub use http_error::{HttpError, HttpResponse, json_response};
pub use limits::ServerLimits;
pub use methods::Methods;
pub use pieces::json_in_pieces;
pub use request::{BodyShare, RequestBody};
pub use serve::serve;
pub use workers::Workers;
