//! The methods that a path takes.

use hyper::header::ALLOW;
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};

use super::http_error::HttpError;

/// The methods that a path takes.
pub struct Methods {
    allowed: &'static [Method],
    /// Their names, for the header `Allow`.
    names: &'static str,
}

impl Methods {
    pub const POST: Self = Self { allowed: &[Method::POST], names: "POST" };
    pub const READ: Self = Self { allowed: &[Method::GET, Method::HEAD], names: "GET, HEAD" };
    pub const GET_OR_DELETE: Self = Self { allowed: &[Method::GET, Method::DELETE], names: "GET, DELETE" };

    /// Checks the method of a request.
    ///
    /// # Errors
    /// 405 for another method.
    pub fn check(&self, head: &Parts) -> Result<(), HttpError> {
        if self.allowed.contains(&head.method) {
            return Ok(());
        }
        let message = format!("{} takes {}, not {}", head.uri.path(), self.names, head.method);
        Err(HttpError::new(StatusCode::METHOD_NOT_ALLOWED, message).with(ALLOW, self.names))
    }
}
