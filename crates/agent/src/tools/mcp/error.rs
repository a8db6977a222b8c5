//! The error of a request.

/// The error of a request without a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum McpError {
    /// The server replied with an error, or with an invalid result; its text.
    Refused(String),
    /// There was no reply within the time limit.
    Late,
    /// The connection has ended, for this reason. `delivered` is true if the server may have received the request and acted on
    /// it.
    Gone { why: String, delivered: bool },
    /// The run was asked to stop.
    Interrupted,
}

impl McpError {
    /// Returns the error for a connection that ended before the request was sent.
    pub(crate) fn undelivered(why: impl Into<String>) -> Self {
        Self::Gone { why: why.into(), delivered: false }
    }

    /// Returns the error in words that follow the name of the server. `seconds` is the time limit.
    pub(super) fn words(&self, seconds: f64) -> String {
        match self {
            Self::Refused(words) => format!("failed: {words}"),
            Self::Late => format!("does not reply within {seconds} s"),
            Self::Gone { why, .. } => why.clone(),
            Self::Interrupted => "was not waited for, because the run was asked to stop".to_owned(),
        }
    }
}
