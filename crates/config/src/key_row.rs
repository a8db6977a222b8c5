//! A setting as a JSON object, for programs that read `config explain --json`.

use super::choices::Choices;
use super::comment::Comment;
use super::show::{json_value, source};
use burnish_hydra::{Node, Value};
use serde_json::{Value as Json, json};

/// Returns the object of a setting: its key, its value and where that was set, its default, its meaning and its allowed values.
pub(super) fn row(key: &str, node: &Node, default: Option<&Node>, choices: &Choices) -> Json {
    let comment = default.map(Comment::for_node).unwrap_or_default();
    json!({
        "key": key,
        "value": json_value(&node.value),
        "from": source(&node.origin),
        "default": default.map(|default| json_value(&default.value)),
        "meaning": comment.meaning(),
        "takes": takes(&comment, choices.names(key).as_deref(), &node.value),
    })
}

/// Returns the object of a key that is not a setting, with the same keys.
pub(super) fn explained_row(key: &str, meaning: &str) -> Json {
    json!({ "key": key, "value": null, "from": null, "default": null, "meaning": meaning, "takes": null })
}

/// Returns the allowed values of a key: the names in a registry, the list in its comment, or the type of its value.
pub(super) fn takes(comment: &Comment, names: Option<&[&str]>, value: &Value) -> String {
    const MANY: &str = "One or a list of ";
    match (names, &comment.vocabulary) {
        (Some(names), listed) if listed.starts_with(MANY) => format!("{MANY}{}", names.join(", ")),
        (Some(names), _) => names.join(" | "),
        (None, listed) if !listed.is_empty() => listed.clone(),
        (None, _) => match value {
            Value::Null => "any value".into(),
            Value::Float(_) => "number".into(),
            Value::Map(_) => "a mapping with any keys".into(),
            value => value.kind().into(),
        },
    }
}
