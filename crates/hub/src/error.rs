//! The error of a request to the Hub, with advice to the user.

use std::fmt;
use std::time::Duration;

use ureq::http::Uri;
use ureq::{Error, Timeout};

use burnish_util::excerpt::beginning_of;
use burnish_util::secret::hide;

/// The limit in characters of a message: it may quote a reply, such as a path in a list of files.
const LONGEST: usize = 4000;

/// A failed request to the Hub.
#[derive(Debug)]
pub struct HubError {
    pub message: String,
    /// Advice to the user; may be empty.
    pub help: String,
    pub kind: HubErrorKind,
}

/// The kind of an error, which decides about another attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HubErrorKind {
    /// Another attempt would fail too: a wrong name, a missing right, a full disk.
    Permanent,
    /// Another attempt may succeed: an overloaded server, a broken connection.
    Transient,
    /// The reply came too slowly. Another attempt may succeed, but the bytes do not count as progress.
    Slow,
    /// The server does not reply, or this process may not ask it.
    Unreachable,
}

impl HubError {
    /// Returns an error that no further attempt can change.
    pub(crate) fn permanent(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { message: beginning_of(&message.into(), LONGEST), help: help.into(), kind: HubErrorKind::Permanent }
    }

    /// Returns an error that another attempt may avoid.
    pub(crate) fn transient(message: impl Into<String>) -> Self {
        Self { message: beginning_of(&message.into(), LONGEST), help: String::new(), kind: HubErrorKind::Transient }
    }

    /// Returns the error of a request without a reply within `patience`. Hides secrets that `error` quotes.
    pub(crate) fn no_reply(uri: &Uri, error: &Error, patience: Duration) -> Self {
        let why = match error {
            Error::Io(error) => error.to_string(),
            Error::HostNotFound => "there is no machine of this name".to_owned(),
            Error::ConnectionFailed => "no connection".to_owned(),
            Error::Timeout(Timeout::SendBody) => "it takes the request too slowly".to_owned(),
            Error::Timeout(_) => format!("no reply within {} s", patience.as_secs()),
            error => error.to_string(),
        };
        let message = hide(&format!("{} does not reply: {why}", origin(uri))).into_owned();
        Self { message, help: String::new(), kind: HubErrorKind::Unreachable }
    }
}

/// Returns the scheme and the host of an address. The rest may be signed, so messages leave it out.
pub(crate) fn origin(uri: &Uri) -> String {
    format!("{}://{}", uri.scheme_str().unwrap_or("https"), uri.authority().map_or("", |one| one.as_str()))
}

impl fmt::Display for HubError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.help.as_str() {
            "" => f.write_str(&self.message),
            help => write!(f, "{}; {help}", self.message),
        }
    }
}

impl std::error::Error for HubError {}

impl From<anyhow::Error> for HubError {
    fn from(error: anyhow::Error) -> Self {
        Self::permanent(format!("{error:#}"), "")
    }
}
