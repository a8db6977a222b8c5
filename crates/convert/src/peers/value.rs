//! Short constructors of values, and conversions from and to text.

use burnish_hydra::{Node, Origin, Problem, Value, YamlSource, yaml};
use std::sync::Arc;

fn node(value: Value) -> Node {
    Node::new(value, Origin::Override(Arc::from("")))
}

pub fn text(text: impl Into<String>) -> Value {
    Value::Text(text.into())
}

pub fn int(number: impl TryInto<i64>) -> Value {
    number.try_into().map_or(Value::Null, Value::Int)
}

pub fn float(number: f64) -> Value {
    Value::Float(number)
}

pub fn list(items: impl IntoIterator<Item = Value>) -> Value {
    Value::List(items.into_iter().map(node).collect())
}

pub fn map<'a>(entries: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    Value::Map(entries.into_iter().map(|(name, value)| (name.to_string(), node(value))).collect())
}

/// Reads a value as YAML; a text that is not YAML stays a text.
pub(super) fn read(text: &str) -> Value {
    parse(text).unwrap_or_else(|_| Value::Text(text.to_string()))
}

/// Reads a value as YAML, which includes JSON.
///
/// # Errors
/// If the text is not YAML.
pub(super) fn parse(text: &str) -> Result<Value, Problem> {
    let source = Arc::new(YamlSource { name: "the value".into(), text: format!("x: {text}") });
    Ok(yaml::parse(&source)?.get("x").map_or(Value::Null, |node| node.value.clone()))
}

/// Returns a number, even from a text.
pub(super) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(value) => Some(*value as f64),
        Value::Float(value) => Some(*value),
        Value::Text(text) => text.replace('_', "").parse().ok(),
        _ => None,
    }
}

/// Returns a number as an integer if it has no fraction.
pub(crate) fn from_number(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 1e15 { Value::Int(number as i64) } else { Value::Float(number) }
}

/// Returns a bool by the rules of transformers' `HfArgumentParser`.
pub(super) fn flag(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(value) => Some(*value),
        Value::Int(0) => Some(false),
        Value::Int(1) => Some(true),
        Value::Text(text) => match text.to_lowercase().as_str() {
            "yes" | "true" | "t" | "y" | "1" => Some(true),
            "no" | "false" | "f" | "n" | "0" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// Writes a value as a word of an override.
pub(super) fn word(value: &Value) -> String {
    match value {
        Value::Text(text) if is_plain(text) => text.clone(),
        Value::Text(text) => quoted(text),
        Value::List(items) => format!("[{}]", items.iter().map(|item| word(&item.value)).collect::<Vec<_>>().join(",")),
        Value::Map(entries) => {
            let entries = entries.iter().map(|(key, node)| format!("{key}:{}", word(&node.value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
        }
        Value::Float(number) if number.is_infinite() => (if *number > 0.0 { "inf" } else { "-inf" }).into(),
        scalar => scalar.to_yaml(),
    }
}

/// Quotes a text; a backslash is literal unless a quote follows.
fn quoted(text: &str) -> String {
    let doubled = |piece: &str| piece.to_string() + &"\\".repeat(piece.len() - piece.trim_end_matches('\\').len());
    format!("'{}'", text.split('\'').map(doubled).collect::<Vec<_>>().join("\\'"))
}

fn is_plain(text: &str) -> bool {
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '_');
    let is_word = matches!(text.to_lowercase().as_str(), "null" | "true" | "false" | "inf" | "nan");
    begins && !is_word && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c))
}
