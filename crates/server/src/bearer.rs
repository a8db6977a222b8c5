//! The bearer token that a server may require.

use hyper::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use hyper::{HeaderMap, StatusCode};

use super::http_error::HttpError;

/// The token of a server; `None` if clients need no token.
#[derive(Clone, Default)]
pub struct Bearer(pub Option<String>);

impl Bearer {
    /// Checks the token of a request.
    ///
    /// # Errors
    /// 401 if the server has a token and the request lacks it or has another.
    pub fn check(&self, headers: &HeaderMap) -> Result<(), HttpError> {
        let Some(token) = &self.0 else { return Ok(()) };
        let sent = headers.get(AUTHORIZATION).and_then(|header| header.as_bytes().strip_prefix(b"Bearer "));
        let refused = |message| Err(HttpError::new(StatusCode::UNAUTHORIZED, message).with(WWW_AUTHENTICATE, "Bearer"));
        match sent {
            Some(sent) if same(sent, token.as_bytes()) => Ok(()),
            Some(_) => refused("the bearer token is wrong"),
            None => refused("the header `Authorization: Bearer TOKEN` is missing"),
        }
    }
}

/// Compares in constant time, so that timing does not reveal how much of a token is right.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differences, (a, b)| differences | (a ^ b)) == 0
}
