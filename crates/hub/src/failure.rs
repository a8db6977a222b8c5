//! The reason why something could not be had from the Hub, and what to do about it.

use std::fmt;
use std::time::Duration;

use ureq::Error;
use ureq::http::Uri;

use burnish_util::secret::hide;

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

    /// The failure of a request that nobody answered for so long. A secret that the error quotes is hidden.
    pub fn unanswered(uri: &Uri, error: &Error, patience: Duration) -> Self {
        let why = match error {
            Error::Io(error) => error.to_string(),
            Error::HostNotFound => "no machine of this name is known".to_owned(),
            Error::ConnectionFailed => "no connection".to_owned(),
            Error::Timeout(_) => format!("no answer within {} s", patience.as_secs()),
            error => error.to_string(),
        };
        let message = hide(&format!("{} does not answer: {why}", origin(uri))).into_owned();
        Self { message, help: String::new(), cause: Cause::Unreachable }
    }
}

/// The scheme and the host of an address, which are shown where the rest may be signed.
pub fn origin(uri: &Uri) -> String {
    format!("{}://{}", uri.scheme_str().unwrap_or("https"), uri.authority().map_or("", |one| one.as_str()))
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
