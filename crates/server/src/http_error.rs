//! JSON responses, and error responses with their reason.

use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use serde_json::{Value, json};

use super::body::ResponseBody;

/// A response.
pub type HttpResponse = hyper::Response<ResponseBody>;

/// An error response: `{"error": …}`.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpError {
    pub status: StatusCode,
    pub message: String,
    header: Option<(HeaderName, &'static str)>,
}

impl HttpError {
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), header: None }
    }

    /// Returns status 400, for a request with wrong content.
    pub fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// Returns status 400 and closes the connection, for a request whose end is uncertain.
    pub fn malformed(message: impl Into<String>) -> Self {
        Self::bad(message).with(CONNECTION, "close")
    }

    /// Returns status 503, for a request that may be repeated a second later.
    pub fn busy(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message).with(RETRY_AFTER, "1")
    }

    /// Sets the one extra header that an error may have.
    pub fn with(self, name: HeaderName, value: &'static str) -> Self {
        Self { header: Some((name, value)), ..self }
    }

    pub fn response(self) -> HttpResponse {
        let body = json!({"error": self.message});
        self.response_with(&body)
    }

    /// Returns the response with another body.
    pub fn response_with(self, body: &Value) -> HttpResponse {
        let mut response = json_response(self.status, body);
        if let Some((name, value)) = self.header {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

/// Returns a JSON response.
pub fn json_response(status: StatusCode, body: &Value) -> HttpResponse {
    let mut response = HttpResponse::new(Bytes::from(format!("{body}\n")).into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
