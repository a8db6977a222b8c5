//! The form in which a configuration is saved and sent: what comes from the environment stays as it was written, and other secrets
//! are hidden.

use super::tree::Tree;
use crate::hydra::{Node, Problem, Value, below};
use crate::util::secret::{HIDDEN, hide, is_hidden, is_secret, may_be_number, remember};

impl Tree {
    /// Returns the configuration as it is saved: `${oc.env:…}` as written, other secrets as `***`.
    pub fn saved(&self) -> Node {
        without_secrets("", self.written.as_ref().unwrap_or(&self.root))
    }

    /// Returns what [`Tree::parse`] makes of the configuration that is saved, for comparisons.
    pub fn as_saved(&self) -> Self {
        Self { root: self.saved(), written: None }
    }

    /// Returns the configuration that is saved as YAML, which can be loaded again if it has no hidden secrets.
    pub fn to_saved_yaml(&self) -> String {
        format!("{}\n", self.saved().value.to_yaml())
    }
}

fn without_secrets(key: &str, node: &Node) -> Node {
    let value = match &node.value {
        Value::Map(map) => {
            Value::Map(map.iter().map(|(name, node)| (name.clone(), without_secrets(&inside(key, name), node))).collect())
        }
        Value::List(items) => Value::List(items.iter().map(|item| without_secrets(key, item)).collect()),
        Value::Text(text) if is_secret(key) && !text.is_empty() && !text.contains("${") => Value::Text(HIDDEN.to_owned()),
        Value::Int(_) | Value::Float(_) if is_secret(key) && may_be_number(key) => Value::Text(HIDDEN.to_owned()),
        Value::Text(text) => Value::Text(hide(text).into_owned()),
        other => other.clone(),
    };
    Node { value, ..node.clone() }
}

/// The key by which an entry of a mapping is judged: everything in a secret mapping is secret.
fn inside(key: &str, name: &str) -> String {
    if is_secret(key) { key.to_owned() } else { below(key, name) }
}

/// Remembers the values of all secret keys of a resolved configuration.
pub(super) fn remember_secrets(key: &str, node: &Node) {
    match &node.value {
        Value::Map(map) => map.iter().for_each(|(name, node)| remember_secrets(&inside(key, name), node)),
        Value::List(items) => items.iter().for_each(|item| remember_secrets(key, item)),
        Value::Text(text) if is_secret(key) => remember(text),
        Value::Int(number) if is_secret(key) && may_be_number(key) => remember(&number.to_string()),
        _ => {}
    }
}

/// Finds values that were hidden when the configuration was saved.
pub(super) fn find_hidden(root: &Node) -> Vec<Problem> {
    let mut problems = vec![];
    root.walk(&mut |key, node| {
        if matches!(&node.value, Value::Text(text) if is_hidden(text)) {
            let message = format!("`{key}` is a secret that was not saved: {HIDDEN} stands for it");
            let help = format!("give it again: {key}=VALUE, or {key}='${{oc.env:NAME}}', which is saved as it is written");
            problems.push(Problem::new(key, message).at(&node.origin).help(help));
        }
    });
    problems
}
