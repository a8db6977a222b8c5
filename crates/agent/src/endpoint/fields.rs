//! The fields of a request's body, taken one by one. Null counts as missing, as in OpenAI's API.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::body_json::{JsonPrompt, ValueBudget, fields};
use super::error::ApiError;
use burnish_util::excerpt::beginning_of;

/// The limit in bytes of an invalid value that a message shows.
const SHOWN: usize = 80;

/// The limit of fields of a body.
const MAX_FIELDS: usize = 1000;
/// The limits of names that are returned of fields that were not taken: their number, and the characters of a name.
const MAX_LEFT: usize = 100;
const LONGEST_NAME: usize = 80;

/// The fields of an object that have not been taken yet. A field becomes a value when it is taken.
pub struct RequestFields<'a> {
    /// The texts of values, by their names. A later field replaces an earlier one of the same name.
    texts: BTreeMap<String, &'a [u8]>,
    budget: ValueBudget,
}

impl<'a> RequestFields<'a> {
    /// Finds the fields of a body.
    ///
    /// # Errors
    /// If it is not a JSON object.
    pub fn parse(body: &'a [u8]) -> Result<Self, ApiError> {
        let wrong = |error| ApiError::request(format!("the body must be a JSON object: {error}"));
        serde_json::from_slice::<IgnoredAny>(body).map_err(wrong)?;
        let budget = ValueBudget::default();
        if !body.trim_ascii_start().starts_with(b"{") {
            let other = budget.value(body).map_err(wrong)?;
            return Err(ApiError::request(format!("the body must be a JSON object, not {}", shown(&other))));
        }
        let too_many = || ApiError::request(format!("the body has more than {MAX_FIELDS} fields"));
        let fields = fields(body, MAX_FIELDS).ok_or_else(too_many)?;
        let named = |(name, text)| Ok((serde_json::from_slice(name).map_err(wrong)?, text));
        Ok(Self { texts: fields.into_iter().map(named).collect::<Result<_, ApiError>>()?, budget })
    }

    /// Takes a value; `None` if it is missing or null.
    ///
    /// # Errors
    /// If the value is nested too deeply, or the body has too many values.
    pub fn take(&mut self, name: &str) -> Result<Option<Value>, ApiError> {
        let Some(text) = self.texts.remove(name) else { return Ok(None) };
        let value = self.budget.value(text).map_err(|error| invalid(name, &error))?;
        Ok(Some(value).filter(|value| !value.is_null()))
    }

    /// Returns true if the body has a field that is not null and was not taken.
    pub(super) fn has(&self, name: &str) -> bool {
        self.texts.get(name).is_some_and(|text| *text != b"null")
    }

    /// Takes prompts; `None` if they are missing or null.
    ///
    /// # Errors
    /// As for [`RequestFields::take`].
    pub(super) fn prompts(&mut self, name: &str) -> Result<Option<JsonPrompt>, ApiError> {
        let Some(text) = self.texts.remove(name).filter(|text| *text != b"null") else { return Ok(None) };
        self.budget.prompts(text).map(Some).map_err(|error| invalid(name, &error))
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

    /// Takes an integer from 0 to `most`.
    pub(super) fn up_to(&mut self, name: &str, most: usize) -> Result<Option<usize>, ApiError> {
        self.taken(name, &format!("an integer from 0 to {most}"), |value| {
            value.as_u64().and_then(|number| usize::try_from(number).ok()).filter(|number| *number <= most).ok_or(value)
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
        let Some(value) = self.take(name)? else { return Ok(None) };
        read(value)
            .map(Some)
            .map_err(|wrong| ApiError::field(name, format!("`{name}` must be {expected}, not {}", shown(&wrong))))
    }

    /// Drops a field.
    pub(super) fn drop(&mut self, name: &str) {
        self.texts.remove(name);
    }

    /// Returns the names of the fields that were not taken, at most 100, each shortened.
    pub fn unread(self) -> Vec<String> {
        let names = self.texts.iter().filter(|(_, text)| **text != b"null").map(|(name, _)| name);
        names.take(MAX_LEFT).map(|name| beginning_of(name, LONGEST_NAME)).collect()
    }
}

/// Returns the error of a field that cannot be parsed.
fn invalid(name: &str, error: &serde_json::Error) -> ApiError {
    ApiError::field(name, format!("`{name}` cannot be read: {error}"))
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
