//! The reason why something could not be had from the Hub, and what to do about it.

use std::fmt;

/// The reason why something could not be had from the Hub.
#[derive(Debug)]
pub struct Failure {
    pub message: String,
    /// What to do about it; may be empty.
    pub help: String,
    pub cause: Cause,
}

/// The kind of a failure, which decides whether it is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The answer will be the same: a wrong name, a missing right, a full disk.
    Final,
    /// Another attempt may succeed: a server that is overloaded, a connection that broke.
    Passing,
    /// Nobody answers, or nobody may be asked.
    Unreachable,
}

impl Failure {
    /// A failure that no other attempt changes.
    pub fn last(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { message: message.into(), help: help.into(), cause: Cause::Final }
    }

    /// A failure that may pass.
    pub fn passing(message: impl Into<String>) -> Self {
        Self { message: message.into(), help: String::new(), cause: Cause::Passing }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.help.as_str() {
            "" => f.write_str(&self.message),
            help => write!(f, "{}; {help}", self.message),
        }
    }
}

impl std::error::Error for Failure {}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::last(format!("{error:#}"), "")
    }
}
