//! The paths and responses of a command that listens.

use std::future::Future;
use std::sync::Arc;

use hyper::http::request::Parts;

use super::http_error::{HttpError, HttpResponse};
use super::request::RequestBody;

/// The paths and responses of a command that listens.
pub trait Handler: Send + Sync + 'static {
    /// Checks the head of a request (method, path, authorization) before its body is read.
    ///
    /// # Errors
    /// A [`HttpError`], which is sent as the response.
    fn admit(&self, head: &Parts) -> Result<(), HttpError>;

    /// Answers an admitted request. The future is dropped when the client leaves. It keeps the share of the body as long as it
    /// keeps values of the body, also in threads.
    fn answer(self: Arc<Self>, head: Parts, body: RequestBody) -> impl Future<Output = Result<HttpResponse, HttpError>> + Send;

    /// Notes an error response of this handler or of the server itself. `request`: its method and path.
    fn on_error(&self, request: &str, error: &HttpError);

    /// Returns the response for an error.
    fn error_response(&self, error: HttpError) -> HttpResponse {
        error.response()
    }
}
