//! The saved and sent form of a configuration: with all values of the run, values from the environment included, but without
//! secrets. A secret from the environment stays `${oc.env:…}`; other secrets are hidden.

use super::tree::Tree;
use burnish_hydra::{Node, Problem, Value, below, inline};
use burnish_util::secret::{
    HIDDEN, hide, is_hidden, is_secret, is_secret_value, remember_listed, remember_setting, remember_words,
};

impl Tree {
    /// Returns the saved configuration: secrets as `***`, and secrets from the environment as `${oc.env:…}`.
    pub fn saved(&self) -> Node {
        saved("", &self.root, self.written.as_ref().unwrap_or(&self.root))
    }

    /// Returns the configuration that [`Tree::parse`] would read from the saved one, for comparisons.
    pub fn as_saved(&self) -> Self {
        Self { root: self.saved(), written: None }
    }

    /// Returns the configuration with all values from the environment as `${oc.env:…}`, and other secrets as `***`.
    pub fn as_written(&self) -> Self {
        Self { root: without_secrets("", self.written.as_ref().unwrap_or(&self.root)), written: None }
    }

    /// Returns the saved configuration as YAML, which can be loaded again if no secret is hidden.
    pub fn to_saved_yaml(&self) -> String {
        self.as_saved().to_yaml()
    }

    /// Returns the same configuration, as if the environment provided each value.
    pub fn from_environment(&self) -> Self {
        let mut written = self.root.clone();
        for (key, ..) in self.settings() {
            written.put(&key, Node::new(Value::Text("${oc.decode:${oc.env:A_VALUE}}".into()), self.root.origin.clone()));
        }
        Self { root: self.root.clone(), written: Some(written) }
    }
}

/// Returns the saved form of a node. A value from the environment is saved verbatim, unless it is or contains a secret.
fn saved(key: &str, root: &Node, written: &Node) -> Node {
    let value = match (&root.value, &written.value) {
        (Value::Map(map), Value::Map(_)) => {
            let below = |(name, node): (&String, &Node)| {
                (name.clone(), saved(&inside(key, name), node, written.child(name).unwrap_or(node)))
            };
            Value::Map(map.iter().map(below).collect())
        }
        (Value::List(items), Value::List(others)) if items.len() == others.len() => {
            Value::List(items.iter().zip(others).map(|(item, other)| saved(key, item, other)).collect())
        }
        (value, as_written) => {
            let shown = without_secrets(key, root);
            let is_secret = is_secret(key) || shown.value != *value || reads_secret(as_written);
            return if value == as_written || !is_secret { shown } else { without_secrets(key, written) };
        }
    };
    Node { value, ..root.clone() }
}

/// True if a text reads an environment variable with a secret name.
fn reads_secret(written: &Value) -> bool {
    let Value::Text(text) = written else { return false };
    let names = text.split(ENVIRONMENT).skip(1).map(|rest| rest.trim_start_matches([':', ' ', '\'']));
    let name = |rest: &str| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default().to_owned();
    names.map(name).any(|name| is_secret(&name))
}

/// The function that reads the environment.
const ENVIRONMENT: &str = "oc.env";

fn without_secrets(key: &str, node: &Node) -> Node {
    let value = match &node.value {
        Value::Map(map) => {
            Value::Map(map.iter().map(|(name, node)| (name.clone(), without_secrets(&inside(key, name), node))).collect())
        }
        Value::List(items) => Value::List(items.iter().map(|item| without_secrets(key, item)).collect()),
        Value::Text(text) if is_secret_value(key, text) && !text.is_empty() && !text.contains("${") => {
            Value::Text(HIDDEN.to_owned())
        }
        value @ (Value::Int(_) | Value::Float(_)) if is_secret_value(key, &inline(value)) => Value::Text(HIDDEN.to_owned()),
        Value::Text(text) => Value::Text(hide(text).into_owned()),
        other => other.clone(),
    };
    Node { value, ..node.clone() }
}

/// Returns the key that decides if an entry of a mapping is secret: all entries of a secret mapping are secret.
fn inside(key: &str, name: &str) -> String {
    if is_secret(key) { key.to_owned() } else { below(key, name) }
}

/// Remembers the values of all secret keys of a resolved configuration.
pub(super) fn remember_secrets(key: &str, node: &Node) {
    match &node.value {
        Value::Map(map) => map.iter().for_each(|(name, node)| remember_secrets(&inside(key, name), node)),
        Value::List(items) => {
            // Words of a command line, or headers.
            let text = |item: &Node| match &item.value {
                Value::Text(text) => Some(text.clone()),
                _ => None,
            };
            let texts: Vec<String> = items.iter().filter_map(text).collect();
            remember_words(&texts);
            texts.iter().for_each(|text| remember_listed(key, text));
            items.iter().for_each(|item| remember_secrets(key, item));
        }
        Value::Text(text) => remember_setting(key, text),
        Value::Int(number) => remember_setting(key, &number.to_string()),
        _ => {}
    }
}

/// Finds values that were hidden when the configuration was saved.
pub(super) fn find_hidden(root: &Node) -> Vec<Problem> {
    let mut problems = vec![];
    root.walk(&mut |key, node| {
        if matches!(&node.value, Value::Text(text) if is_hidden(text)) {
            let message = format!("`{key}` is a secret, which was saved as {HIDDEN}");
            let help = format!("set it again: {key}=VALUE, or {key}='${{oc.env:NAME}}', which is saved verbatim");
            problems.push(Problem::new(key, message).at(&node.origin).help(help));
        }
    });
    problems
}
