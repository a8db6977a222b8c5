//! Unresolved `${oc.env:…}` in saved configurations: calls written back from their arguments.

use crate::scalar;
use crate::tree::{Node, Value};

/// The function that reads the environment.
pub(super) const ENVIRONMENT: &str = "oc.env";

/// True if a value is, or contains, an unresolved call.
pub(super) fn has_call(node: &Node) -> bool {
    match &node.value {
        Value::Text(text) => text.contains("${oc."),
        Value::List(items) => items.iter().any(has_call),
        Value::Map(map) => map.iter().any(|(_, node)| has_call(node)),
        _ => false,
    }
}

/// Returns the text of a call with these arguments.
pub(super) fn call(function: &str, arguments: &[Node]) -> String {
    let arguments: Vec<String> = arguments.iter().map(|node| argument(&node.value)).collect();
    format!("${{{function}:{}}}", arguments.join(","))
}

fn argument(value: &Value) -> String {
    let list = |parts: Vec<String>| parts.join(",");
    match value {
        Value::Null => "null".to_owned(),
        Value::Text(text) if text.contains("${") || is_plain(text) => text.clone(),
        Value::Text(text) => format!("'{}'", text.replace('\'', "\\'")),
        Value::List(items) => format!("[{}]", list(items.iter().map(|item| argument(&item.value)).collect())),
        Value::Map(map) => {
            format!("{{{}}}", list(map.iter().map(|(name, node)| format!("{name}:{}", argument(&node.value))).collect()))
        }
        number => scalar::python_text(number),
    }
}

/// True if a text needs no quotes.
fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "_./-".contains(c))
}
