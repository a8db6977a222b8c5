//! The token that a server may ask for.

use hyper::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use hyper::{HeaderMap, StatusCode};

use super::refusal::Refusal;

/// The token of a server; `None` if clients need none.
#[derive(Clone, Default)]
pub struct Bearer(pub Option<String>);

impl Bearer {
    /// Checks the token of a request.
    ///
    /// # Errors
    /// If the server has a token and the request does not have the same.
    pub fn check(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let Some(token) = &self.0 else { return Ok(()) };
        let given = headers.get(AUTHORIZATION).and_then(|header| header.as_bytes().strip_prefix(b"Bearer "));
        let refused = |message| Err(Refusal::new(StatusCode::UNAUTHORIZED, message).with(WWW_AUTHENTICATE, "Bearer"));
        match given {
            Some(given) if same(given, token.as_bytes()) => Ok(()),
            Some(_) => refused("the bearer token is not the server's"),
            None => refused("the header `Authorization: Bearer TOKEN` is missing"),
        }
    }
}

/// Compares in constant time, so that the time does not tell how much of a token is right.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differences, (a, b)| differences | (a ^ b)) == 0
}
