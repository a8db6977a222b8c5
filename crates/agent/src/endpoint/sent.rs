//! The answer to a client that asked for something to be sampled.

use serde_json::Value;

use super::refused::Refused;

/// The answer that a client is sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Sent {
    /// JSON.
    Answer(Value),
    /// Server-sent events.
    Chunks(String),
    Refusal(Refused),
}
