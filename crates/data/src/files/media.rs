//! Refuses rows with images, videos or sounds: prompts are text, and training would silently ignore these columns.

use anyhow::{Result, bail};
use serde_json::Value;

use super::rows::{MEDIA_COLUMNS, Row};
use burnish_util::python_tagged::is_missing;

/// Refuses a row that has a value in one of [`MEDIA_COLUMNS`].
pub fn refuse(row: &Row) -> Result<()> {
    let holds = |name: &&&str| row.values.get(**name).is_some_and(is_present);
    match MEDIA_COLUMNS.iter().find(holds) {
        None => Ok(()),
        Some(name) => bail!(
            "column \"{name}\" is not empty, but images, videos and sounds are not supported; remove such rows, or drop the \
             column if the prompts do not need it"
        ),
    }
}

fn is_present(value: &Value) -> bool {
    match value {
        _ if is_missing(value) => false,
        Value::Bool(false) => false,
        Value::Array(items) => items.iter().any(is_present),
        Value::String(text) => !text.is_empty(),
        Value::Object(fields) => fields.values().any(is_present),
        _ => true,
    }
}
