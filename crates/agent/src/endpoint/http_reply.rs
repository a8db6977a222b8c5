//! The reply to a client that requested a response.

use serde_json::Value;

use super::error::ApiError;

/// The reply to a client.
#[derive(Clone, Debug, PartialEq)]
pub enum HttpReply {
    /// A JSON body.
    Json(Value),
    /// Server-sent events.
    Events(String),
    Error(ApiError),
}
