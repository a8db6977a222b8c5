//! Columns of text or of messages.

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::files::rows::Row;
use crate::template::content;
use crate::template::roles::from_sharegpt;

/// The content of a column.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TextOrMessages {
    Text(String),
    Messages(Vec<Value>),
}

impl TextOrMessages {
    /// Reads a column of text or of a list of messages, including messages with `from` and `value`.
    pub(super) fn read(row: &Row, column: &str) -> Result<Self> {
        Self::from_value(row.column(column)?).with_context(|| format!("column \"{column}\""))
    }

    fn from_value(value: &Value) -> Result<Self> {
        match value {
            Value::String(text) => {
                content::refuse_written_messages(text)?;
                Ok(Self::Text(text.clone()))
            }
            Value::Array(list) => Ok(Self::Messages(list.iter().map(from_sharegpt).collect())),
            // A single message as answer, as in LLaMA-Factory's preference rows.
            Value::Object(_) if from_sharegpt(value).get("role").is_some() => Ok(Self::Messages(vec![from_sharegpt(value)])),
            _ => bail!("it must be text or a list of messages"),
        }
    }
}

/// Returns the error for columns that mix text and messages.
pub(super) fn differing<'a>(columns: impl Iterator<Item = (&'a str, &'a TextOrMessages)>) -> String {
    let kind = |column: &TextOrMessages| match column {
        TextOrMessages::Text(_) => "text",
        TextOrMessages::Messages(_) => "a list of messages",
    };
    let columns: Vec<String> = columns.map(|(name, column)| format!("column \"{name}\" is {}", kind(column))).collect();
    format!("{}: they must all be text, or all be lists of messages", columns.join(", "))
}
