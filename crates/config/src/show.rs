//! `config show`: the resolved configuration as YAML or JSON, optionally with the origin of every value.

use super::tree::Tree;
use burnish_hydra::{Node, Origin, Value};
use burnish_util::secret::hide;
use serde_json::{Map, json};

impl Tree {
    /// Returns the YAML of [`Tree::to_yaml`], with the origin of every value in a comment.
    pub fn to_yaml_with_sources(&self) -> String {
        let mut text = String::new();
        yaml(&self.root, 0, &mut text);
        text
    }

    /// Returns the whole configuration as JSON. Infinities and NaN become the strings `Infinity`, `-Infinity` and `NaN`.
    pub fn to_json(&self) -> serde_json::Value {
        json_value(&self.root.value)
    }

    /// Returns the saved configuration as JSON.
    pub fn to_saved_json(&self) -> serde_json::Value {
        json_value(&self.saved().value)
    }

    /// Returns every setting of the saved configuration: its dotted key, its value as JSON, and its origin. A list is one value.
    pub fn settings(&self) -> Vec<(String, serde_json::Value, String)> {
        let mut settings = Vec::new();
        let mut lists = Vec::new();
        self.saved().walk(&mut |key, node| {
            let inside =
                lists.iter().any(|list: &String| key.strip_prefix(list.as_str()).is_some_and(|rest| rest.starts_with('.')));
            if matches!(node.value, Value::List(_)) {
                lists.push(key.to_owned());
            }
            if !inside && !is_section(node) {
                settings.push((key.to_owned(), json_value(&node.value), source(&node.origin)));
            }
        });
        settings
    }

    /// Returns the JSON of [`Tree::to_json`], with every value as `{"value": …, "source": "…"}`.
    pub fn to_json_with_sources(&self) -> serde_json::Value {
        json_with_sources(&self.root)
    }
}

/// Returns the origin of a value as a short text.
pub(crate) fn source(origin: &Origin) -> String {
    match origin {
        Origin::File { .. } => origin.to_string(),
        Origin::Override(text) => hide(&format!("override {text}")).into_owned(),
    }
}

/// Writes each entry of a mapping on a separate line; a list is one value.
fn yaml(node: &Node, indent: usize, text: &mut String) {
    let Value::Map(entries) = &node.value else { return };
    let margin = "  ".repeat(indent);
    for (name, node) in entries {
        let name = Value::Text(name.clone()).to_yaml();
        if is_section(node) {
            text.push_str(&format!("{margin}{name}:\n"));
            yaml(node, indent + 1, text);
            continue;
        }
        let value = node.value.to_yaml();
        let comment = format!("  # {}", source(&node.origin).replace('\n', "\\n"));
        let (first, rest) = value.split_once('\n').unwrap_or((&value, ""));
        let is_block = matches!(&node.value, Value::List(items) if !items.is_empty());
        match is_block {
            true => text.push_str(&format!("{margin}{name}:{comment}\n{margin}{first}\n")),
            false => text.push_str(&format!("{margin}{name}: {first}{comment}\n")),
        }
        rest.lines().for_each(|line| text.push_str(&format!("{margin}{line}\n")));
    }
}

/// True if a node is a mapping with entries. An empty mapping is a value, `{}`.
fn is_section(node: &Node) -> bool {
    matches!(&node.value, Value::Map(entries) if !entries.is_empty())
}

pub(crate) fn json_value(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(value) => json!(value),
        Value::Int(value) => json!(value),
        Value::Float(value) if value.is_nan() => json!("NaN"),
        Value::Float(value) if value.is_infinite() => json!(if *value > 0.0 { "Infinity" } else { "-Infinity" }),
        Value::Float(value) => json!(value),
        Value::Text(text) => json!(text),
        Value::List(items) => items.iter().map(|item| json_value(&item.value)).collect(),
        Value::Map(entries) => {
            entries.iter().map(|(name, node)| (name.clone(), json_value(&node.value))).collect::<Map<_, _>>().into()
        }
    }
}

fn json_with_sources(node: &Node) -> serde_json::Value {
    match &node.value {
        Value::Map(entries) if is_section(node) => {
            entries.iter().map(|(name, node)| (name.clone(), json_with_sources(node))).collect::<Map<_, _>>().into()
        }
        value => json!({ "value": json_value(value), "source": source(&node.origin) }),
    }
}
