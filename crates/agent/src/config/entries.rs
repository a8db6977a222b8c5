//! Helpers for the lists of tools, users and loops: entries with known keys, and errors with their place.

use std::collections::HashMap;

use serde_json::{Map, Value};

use burnish_util::suggest::did_you_mean;

/// A mistake in a configuration file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFileError {
    /// The dotted key of the value, with the indices of lists; empty for the whole file.
    pub key: String,
    pub message: String,
}

/// The names in a list, for finding duplicates.
#[derive(Default)]
pub(super) struct Names(HashMap<String, String>);

impl Names {
    /// Adds the name of the entry at `place`; messages call the entry a `what`.
    ///
    /// # Errors
    /// If another entry has the name.
    pub(super) fn take(&mut self, name: &str, what: &str, place: &str) -> Result<(), ConfigFileError> {
        match self.0.insert(name.to_owned(), place.to_owned()) {
            None => Ok(()),
            Some(first) => Err(wrong(place, format!("the {what} `{name}` is listed twice, first at `{first}`"))),
        }
    }
}

pub(super) fn wrong(key: &str, message: impl Into<String>) -> ConfigFileError {
    ConfigFileError { key: key.to_owned(), message: message.into() }
}

/// Returns the entries below the only key of a file, each with its place.
pub(super) fn entries<'a>(file: &'a Value, list: &str) -> Result<Vec<(&'a Value, String)>, ConfigFileError> {
    let Value::Object(fields) = file else {
        return Err(wrong("", format!("the file must be a mapping with the key `{list}`, not {}", kind_of(file))));
    };
    if let Some(other) = fields.keys().find(|key| *key != list) {
        return Err(wrong(other, format!("unknown key `{other}`: the file has one key, `{list}`")));
    }
    match fields.get(list) {
        None | Some(Value::Null) => Err(wrong("", format!("the file has no `{list}`"))),
        Some(Value::Array(items)) => Ok(items.iter().enumerate().map(|(at, item)| (item, format!("{list}.{at}"))).collect()),
        Some(other) => Err(wrong(list, format!("`{list}` must be a list, not {}", kind_of(other)))),
    }
}

/// Returns the fields of an entry, which may have only known keys.
pub(super) fn fields<'a>(entry: &'a Value, place: &str, known: &[&str]) -> Result<&'a Map<String, Value>, ConfigFileError> {
    let Value::Object(fields) = entry else {
        return Err(wrong(place, format!("`{place}` must be a mapping, not {}", kind_of(entry))));
    };
    match fields.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(fields),
        Some(other) => {
            let message = format!(
                "unknown key `{other}`: the keys are {}.{}",
                known.join(", "),
                did_you_mean(other, known.iter().copied())
            );
            Err(wrong(&format!("{place}.{other}"), message))
        }
    }
}

/// Returns a text, which may be missing but not empty.
pub(super) fn text<'a>(fields: &'a Map<String, Value>, place: &str, key: &str) -> Result<Option<&'a str>, ConfigFileError> {
    match fields.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if !text.is_empty() => Ok(Some(text)),
        Some(other) => Err(wrong(&format!("{place}.{key}"), format!("`{key}` must be a text, not {}", kind_of(other)))),
    }
}

/// Returns the dotted name of a class.
pub(super) fn class_name(fields: &Map<String, Value>, place: &str, key: &str) -> Result<String, ConfigFileError> {
    let Some(name) = text(fields, place, key)? else {
        return Err(wrong(place, format!("the entry has no `{key}`, the dotted name of a class such as my_tools.Search")));
    };
    let is_name = |part: &str| {
        part.starts_with(|c: char| c == '_' || c.is_alphabetic()) && part.chars().all(|c| c == '_' || c.is_alphanumeric())
    };
    if !name.contains('.') || !name.split('.').all(is_name) {
        let message = format!("`{key}` must be the dotted name of a class in a module, such as my_tools.Search, not {name:?}");
        return Err(wrong(&format!("{place}.{key}"), message));
    }
    Ok(name.to_owned())
}

/// Returns a mapping, which may be missing.
pub(super) fn mapping(fields: &Map<String, Value>, place: &str, key: &str) -> Result<Map<String, Value>, ConfigFileError> {
    match fields.get(key) {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(mapping)) => Ok(mapping.clone()),
        Some(other) => Err(wrong(&format!("{place}.{key}"), format!("`{key}` must be a mapping, not {}", kind_of(other)))),
    }
}

/// Describes a value for messages.
pub(super) fn kind_of(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "a mapping".into(),
        Value::String(text) => format!("the text {text:?}"),
        other => other.to_string(),
    }
}
