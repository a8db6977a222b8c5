//! Errors in OpenAI's form.

use burnish_util::excerpt::{beginning_of, excerpt};
use serde_json::{Value, json};

/// The limit of a message in characters: it may quote the request.
const LONGEST: usize = 2000;

/// The error of a refused request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// The HTTP status.
    pub status: u16,
    /// OpenAI's name for the kind of error.
    pub kind: &'static str,
    pub message: String,
    /// The invalid field.
    pub param: Option<String>,
    /// OpenAI's code, which clients check.
    pub code: Option<&'static str>,
}

impl ApiError {
    /// Creates an error about the value of a field.
    pub fn field(name: &str, message: impl Into<String>) -> Self {
        Self { param: Some(name.to_owned()), ..Self::request(message) }
    }

    /// Creates an error about the whole request.
    pub fn request(message: impl Into<String>) -> Self {
        Self::status(400, message)
    }

    /// Creates an error with this HTTP status.
    pub fn status(status: u16, message: impl Into<String>) -> Self {
        let kind = match status {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            500.. => "server_error",
            _ => "invalid_request_error",
        };
        Self { status, kind, message: beginning_of(&message.into(), LONGEST), param: None, code: None }
    }

    /// Creates the error for a request with more tokens than the model supports.
    pub(crate) fn too_long(name: &str, message: impl Into<String>) -> Self {
        Self { code: Some("context_length_exceeded"), ..Self::field(name, message) }
    }

    /// Creates the error for a model that is not served.
    pub fn no_model(name: &str, served: &str) -> Self {
        let message = format!("unknown model {}; the served model is {served:?}", excerpt(name));
        Self { param: Some("model".to_owned()), code: Some("model_not_found"), ..Self::status(404, message) }
    }

    /// Returns the body of the reply.
    pub fn to_json(&self) -> Value {
        json!({"error": {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}})
    }
}
