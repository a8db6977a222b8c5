//! Columns of text or of messages.

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

use crate::data::content;
use crate::data::rows::Row;

/// What a column holds.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Said {
    Text(String),
    Messages(Vec<Value>),
}

impl Said {
    /// Reads a column of text or of a list of messages, also of messages that are written with `from` and `value`.
    pub fn read(row: &Row, column: &str) -> Result<Self> {
        Self::of(row.column(column)?).with_context(|| format!("column \"{column}\""))
    }

    fn of(value: &Value) -> Result<Self> {
        match value {
            Value::String(text) => {
                content::refuse_written_messages(text)?;
                Ok(Self::Text(text.clone()))
            }
            Value::Array(list) => Ok(Self::Messages(list.iter().map(named).collect())),
            _ => bail!("it must be text or a list of messages"),
        }
    }
}

/// The error of columns of which some hold text and others messages.
pub(super) fn differing<'a>(columns: impl Iterator<Item = (&'a str, &'a Said)>) -> String {
    let kind = |said: &Said| match said {
        Said::Text(_) => "text",
        Said::Messages(_) => "a list of messages",
    };
    let columns: Vec<String> = columns.map(|(name, said)| format!("column \"{name}\" is {}", kind(said))).collect();
    format!("{}: they must all be text, or all be lists of messages", columns.join(", "))
}

/// Returns a message of ShareGPT's form (`from`, `value`) with the names that chat templates read; others stay as they are.
pub(super) fn named(message: &Value) -> Value {
    let Some(fields) = message.as_object().filter(|fields| fields.contains_key("from") && !fields.contains_key("role")) else {
        return message.clone();
    };
    let renamed = fields.iter().map(|(key, value)| match key.as_str() {
        "from" => ("role".to_owned(), value.as_str().map_or_else(|| value.clone(), |from| role(from).into())),
        "value" => ("content".to_owned(), value.clone()),
        _ => (key.clone(), value.clone()),
    });
    Value::Object(renamed.collect::<Map<_, _>>())
}

/// The role of a speaker in ShareGPT's names.
fn role(from: &str) -> &str {
    match from {
        "human" => "user",
        "gpt" => "assistant",
        "observation" => "tool",
        other => other,
    }
}
