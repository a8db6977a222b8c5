//! The addresses and answers of a command that listens.

use std::future::Future;
use std::sync::Arc;

use hyper::body::Bytes;
use hyper::http::request::Parts;

use super::refusal::{HttpResponse, Refusal};

/// The addresses and answers of a command that listens.
pub trait Site: Send + Sync + 'static {
    /// Checks the head of a request: method, path, authorization. Nothing of its body has been read.
    ///
    /// # Errors
    /// A [`Refusal`], which is sent instead of an answer.
    fn admit(&self, head: &Parts) -> Result<(), Refusal>;

    /// Answers a request that was admitted. The future is dropped when its client leaves.
    fn answer(self: Arc<Self>, head: Parts, body: Bytes) -> impl Future<Output = Result<HttpResponse, Refusal>> + Send;

    /// Notes that a request was refused, by this site or by the server itself.
    fn refused(&self, refusal: &Refusal);

    /// The answer that says why a request is refused.
    fn refusal(&self, refusal: Refusal) -> HttpResponse {
        refusal.response()
    }
}
