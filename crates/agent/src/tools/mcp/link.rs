//! What a connection to a server can do, whatever it is made of.

use std::time::Instant;

use serde_json::Value;

use super::failure::Failure;

/// A connection to a server, used from many threads at once.
pub trait Link: Send + Sync {
    /// Sends a request and waits for its answer until `end`. A call of a tool that nobody waits for any more is cancelled.
    ///
    /// # Errors
    /// [`Failure`] if there is no answer.
    fn request(&self, method: &str, params: Value, end: Instant) -> Result<Value, Failure>;

    /// Sends a message without an answer. If it does not arrive, the next request says so.
    fn notify(&self, method: &str);

    /// Is told the version of the protocol that was agreed upon.
    fn speaks(&self, _version: &str) {}

    /// True if a request can still be sent.
    fn is_open(&self) -> bool;

    /// True if the other side is a program of ours, which is ended with the link.
    fn is_program(&self) -> bool {
        false
    }

    /// Ends the connection, and with it all requests, for this reason.
    fn close(&self, why: &str);

    /// What the other side printed last, for the end of a message; empty if nothing is known.
    fn last_words(&self) -> String {
        String::new()
    }
}

/// The request whose answer may be worth nothing after a while, so that it is cancelled then.
pub const CALL: &str = "tools/call";
