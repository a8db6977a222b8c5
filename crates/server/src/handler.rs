//! The paths and responses of a command that listens.

use std::future::Future;
use std::sync::Arc;

use hyper::body::Bytes;
use hyper::http::request::Parts;

use super::http_error::{HttpError, HttpResponse};

/// The paths and responses of a command that listens.
pub trait Handler: Send + Sync + 'static {
    /// Checks the head of a request (method, path, authorization) before its body is read.
    ///
    /// # Errors
    /// A [`HttpError`], which is sent as the response.
    fn admit(&self, head: &Parts) -> Result<(), HttpError>;

    /// Answers an admitted request. The future is dropped when the client leaves.
    fn answer(self: Arc<Self>, head: Parts, body: Bytes) -> impl Future<Output = Result<HttpResponse, HttpError>> + Send;

    /// Notes an error response of this handler or of the server itself. `request`: its method and path.
    fn on_error(&self, request: &str, error: &HttpError);

    /// Returns the response for an error.
    fn error_response(&self, error: HttpError) -> HttpResponse {
        error.response()
    }
}
