//! Refusals in OpenAI's form.

use serde_json::{Value, json};

/// A request that is refused, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The status of HTTP.
    pub status: u16,
    /// OpenAI's name of the kind of error.
    pub kind: &'static str,
    pub message: String,
    /// The field that is to blame.
    pub param: Option<String>,
    /// OpenAI's code, which clients look for.
    pub code: Option<&'static str>,
}

impl Refused {
    /// A refusal for the value of a field.
    pub fn field(name: &str, message: impl Into<String>) -> Self {
        Self { param: Some(name.to_owned()), ..Self::request(message) }
    }

    /// A refusal for what is no field's fault alone.
    pub fn request(message: impl Into<String>) -> Self {
        Self::status(400, message)
    }

    /// A refusal with another status than 400.
    pub fn status(status: u16, message: impl Into<String>) -> Self {
        let kind = match status {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            500.. => "server_error",
            _ => "invalid_request_error",
        };
        Self { status, kind, message: message.into(), param: None, code: None }
    }

    /// A request for more tokens than the model has positions.
    pub fn too_long(name: &str, message: impl Into<String>) -> Self {
        Self { code: Some("context_length_exceeded"), ..Self::field(name, message) }
    }

    /// A request for a model that is not served.
    pub fn no_model(name: &str, served: &str) -> Self {
        let message = format!("there is no model {name:?}; {served:?} is served");
        Self { param: Some("model".to_owned()), code: Some("model_not_found"), ..Self::status(404, message) }
    }

    /// The body of the answer.
    pub fn to_json(&self) -> Value {
        json!({"error": {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}})
    }
}
