//! The fields of a request's body, taken one by one. Null counts as missing, as in OpenAI's API.

use serde_json::{Map, Value};

use super::error::ApiError;

/// The limit in bytes of an invalid value that a message shows.
const SHOWN: usize = 80;

/// The fields of an object that have not been taken yet.
pub struct RequestFields(Map<String, Value>);

impl RequestFields {
    /// Parses a body.
    ///
    /// # Errors
    /// If it is not a JSON object.
    pub fn parse(body: &[u8]) -> Result<Self, ApiError> {
        match serde_json::from_slice(body) {
            Ok(Value::Object(fields)) => Ok(Self(fields)),
            Ok(other) => Err(ApiError::request(format!("the body must be a JSON object, not {}", shown(&other)))),
            Err(error) => Err(ApiError::request(format!("the body must be a JSON object: {error}"))),
        }
    }

    /// Takes a value; `None` if it is missing or null.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name).filter(|value| !value.is_null())
    }

    pub fn text(&mut self, name: &str) -> Result<Option<String>, ApiError> {
        self.taken(name, "a text", |value| match value {
            Value::String(text) => Ok(text),
            other => Err(other),
        })
    }

    pub fn flag(&mut self, name: &str) -> Result<Option<bool>, ApiError> {
        self.taken(name, "true or false", |value| value.as_bool().ok_or(value))
    }

    /// Takes a finite number in a range, which `expected` describes.
    pub fn number(&mut self, name: &str, expected: &str, is_right: impl Fn(f64) -> bool) -> Result<Option<f64>, ApiError> {
        self.taken(name, expected, |value| value.as_f64().filter(|number| number.is_finite() && is_right(*number)).ok_or(value))
    }

    /// Takes an integer in a range, which `expected` describes.
    pub fn integer(&mut self, name: &str, expected: &str, is_right: impl Fn(i64) -> bool) -> Result<Option<i64>, ApiError> {
        self.taken(name, expected, |value| value.as_i64().filter(|number| is_right(*number)).ok_or(value))
    }

    /// Takes a count: an integer of at least `least`.
    pub fn count(&mut self, name: &str, least: usize) -> Result<Option<usize>, ApiError> {
        self.taken(name, &format!("an integer from {least}"), |value| {
            value.as_u64().and_then(|number| usize::try_from(number).ok()).filter(|number| *number >= least).ok_or(value)
        })
    }

    pub fn list(&mut self, name: &str) -> Result<Option<Vec<Value>>, ApiError> {
        self.taken(name, "a list", |value| match value {
            Value::Array(list) => Ok(list),
            other => Err(other),
        })
    }

    pub fn object(&mut self, name: &str) -> Result<Option<Map<String, Value>>, ApiError> {
        self.taken(name, "an object", |value| match value {
            Value::Object(fields) => Ok(fields),
            other => Err(other),
        })
    }

    /// Takes a list of token ids.
    pub fn ids(&mut self, name: &str) -> Result<Option<Vec<u32>>, ApiError> {
        self.taken(name, "a list of token ids", |value| ids(&value).ok_or(value))
    }

    fn taken<T>(
        &mut self,
        name: &str,
        expected: &str,
        read: impl FnOnce(Value) -> Result<T, Value>,
    ) -> Result<Option<T>, ApiError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        read(value)
            .map(Some)
            .map_err(|wrong| ApiError::field(name, format!("`{name}` must be {expected}, not {}", shown(&wrong))))
    }

    /// Returns the names of the fields that were not taken.
    pub fn left(self) -> Vec<String> {
        self.0.into_iter().filter(|(_, value)| !value.is_null()).map(|(name, _)| name).collect()
    }
}

/// Returns a list of token ids; `None` for any other value.
pub(super) fn ids(value: &Value) -> Option<Vec<u32>> {
    value.as_array()?.iter().map(|id| id.as_u64().and_then(|id| u32::try_from(id).ok())).collect()
}

/// Returns a short description of a value, for messages.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Array(list) => return format!("a list of {}", list.len()),
        Value::Object(_) => return "an object".to_owned(),
        Value::String(text) if text.len() > SHOWN => return format!("a text of {} bytes", text.len()),
        _ => {}
    }
    value.to_string()
}
