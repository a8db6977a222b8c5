//! The reply to a client that requested a response.

use serde_json::Value;

use super::refused::Refused;

/// The reply to a client.
#[derive(Clone, Debug, PartialEq)]
pub enum Sent {
    /// A JSON body.
    Answer(Value),
    /// Server-sent events.
    Chunks(String),
    Refusal(Refused),
}
