//! Answers: JSON, and refusals with their reason.

use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use serde_json::{Value, json};

use super::body::Body;

/// An answer.
pub type HttpResponse = hyper::Response<Body>;

/// An answer that says why a request is refused: `{"error": …}`.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    pub status: StatusCode,
    pub message: String,
    header: Option<(HeaderName, &'static str)>,
}

impl Refusal {
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), header: None }
    }

    /// A refusal of a request for its content, with status 400.
    pub fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// A refusal of a request whose end may not be where the client thinks it is: 400, and the connection is closed.
    pub fn malformed(message: impl Into<String>) -> Self {
        Self::bad(message).with(CONNECTION, "close")
    }

    /// A refusal of a request that may be repeated a second later.
    pub fn busy(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message).with(RETRY_AFTER, "1")
    }

    /// Adds the one header that a refusal may have.
    pub fn with(self, name: HeaderName, value: &'static str) -> Self {
        Self { header: Some((name, value)), ..self }
    }

    pub fn response(self) -> HttpResponse {
        let body = json!({"error": self.message});
        self.response_with(&body)
    }

    /// The answer with another body.
    pub fn response_with(self, body: &Value) -> HttpResponse {
        let mut response = json_response(self.status, body);
        if let Some((name, value)) = self.header {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

/// An answer in JSON.
pub fn json_response(status: StatusCode, body: &Value) -> HttpResponse {
    let mut response = HttpResponse::new(Bytes::from(format!("{body}\n")).into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
