//! The interface of a connection to a server, for all transports.

use std::time::Instant;

use serde_json::Value;

use super::error::McpError;

/// A connection to a server, used from many threads at once.
pub(super) trait Transport: Send + Sync {
    /// Sends a request and waits for its reply until `end`. A tool call that times out is cancelled.
    ///
    /// # Errors
    /// [`McpError`] if there is no reply.
    fn request(&self, method: &str, params: Value, end: Instant) -> Result<Value, McpError>;

    /// Sends a message without a reply, and waits until `end` for its delivery. If it does not arrive, the next request fails.
    fn notify(&self, method: &str, end: Instant);

    /// Stores the agreed version of the protocol.
    fn speaks(&self, _version: &str) {}

    /// Returns true if requests can still be sent.
    fn is_open(&self) -> bool;

    /// Returns true if the server is a child process, which ends with the connection.
    fn is_program(&self) -> bool {
        false
    }

    /// Closes the connection and fails all its requests, for this reason.
    fn close(&self, why: &str);

    /// Returns the last output of the server, for the end of a message; empty without any.
    fn last_words(&self) -> String {
        String::new()
    }
}

/// The method of tool calls, which are cancelled when they time out.
pub(super) const CALL: &str = "tools/call";
