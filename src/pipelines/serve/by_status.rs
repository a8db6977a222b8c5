//! The numbers of requests by address, method and status.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::paths::endpoint;

/// The methods that are counted by their names.
const METHODS: [&str; 6] = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"];

/// The numbers of requests by endpoint, method and status.
#[derive(Default)]
pub(super) struct RequestsByStatus(Mutex<BTreeMap<(&'static str, &'static str, u16), u64>>);

impl RequestsByStatus {
    /// Counts a request with this method and path.
    pub(super) fn add(&self, request: &str, status: u16) {
        let (method, path) = request.split_once(' ').unwrap_or_default();
        let method = METHODS.into_iter().find(|known| *known == method).unwrap_or("other");
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry((endpoint(path), method, status)).or_default() += 1;
    }

    /// Returns the number of requests for each address, method and status.
    pub(super) fn all(&self) -> BTreeMap<(&'static str, &'static str, u16), u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_requests_share_a_counter() {
        let counts = RequestsByStatus::default();
        for request in ["BREW /a", "GET /b", "POST /v1/completions", "GET /v1/models/a", "GET /v1/models/b", ""] {
            counts.add(request, 404);
        }
        let counts = counts.0.into_inner().unwrap();
        let expected = [
            (("/v1/completions", "POST", 404), 1),
            (("/v1/models/NAME", "GET", 404), 2),
            (("other", "GET", 404), 1),
            (("other", "other", 404), 2),
        ];
        assert!(counts.into_iter().eq(expected));
    }
}
