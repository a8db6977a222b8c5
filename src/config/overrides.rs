//! Overrides of the command line: `key=value`, `+key=value`, `++key=value`, `~key`, `group=option`.

use super::error::Problem;
use super::grammar;
use super::provenance::Origin;
use super::suggest;
use super::tree::{Node, Value};
use std::sync::Arc;

/// What an override does to its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// `key=value`: the key must be there.
    Change,
    /// `+key=value`: the key must not be there.
    Add,
    /// `++key=value`: either.
    Force,
    /// `~key` or `~key=value`: the key must be there, with that value if one is given.
    Delete,
}

/// One override, parsed.
#[derive(Debug, Clone)]
pub struct Override {
    pub operation: Operation,
    /// The dotted key, or the group.
    pub key: String,
    /// What follows the `@` of `group@package`.
    pub package: Option<String>,
    /// `None` for `~key`.
    pub value: Option<Node>,
    pub origin: Origin,
}

/// Parses one command-line word.
pub fn parse(text: &str) -> Result<Override, Problem> {
    let origin = Origin::Override(Arc::from(text));
    let problem = |message: &str| Problem::new("", message).at(&origin);
    let operations = [("++", Operation::Force), ("+", Operation::Add), ("~", Operation::Delete), ("", Operation::Change)];
    let (rest, operation) = operations
        .iter()
        .find_map(|(prefix, operation)| Some((text.strip_prefix(prefix)?, *operation)))
        .unwrap_or((text, Operation::Change));
    let (name, value) = match rest.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None if operation == Operation::Delete => (rest, None),
        None => return Err(problem("an override is written as key=value").help("to delete a key, write ~key")),
    };
    if let Some(bad) = name.chars().find(|c| !(c.is_ascii_alphanumeric() || "_-./@$".contains(*c))) {
        let help =
            if bad == '[' { "an item of a list is written as key.0=value" } else { "keys are words with dots between them" };
        return Err(problem(&format!("`{bad}` cannot stand in a key")).help(help));
    }
    let (key, package) = name.split_once('@').map_or((name, None), |(key, package)| (key, Some(package.to_string())));
    if key.split('.').any(str::is_empty) {
        return Err(problem("a key is written as part.part.part"));
    }
    let parsed = value
        .map(|value| grammar::parse_value(value, &origin))
        .transpose()
        .map_err(|message| Problem::new(key, format!("the value of `{key}` cannot be read: {message}")).at(&origin))?;
    Ok(Override { operation, key: key.to_string(), package, value: parsed, origin })
}

impl Override {
    /// Applies the override to the tree, by Hydra's rules.
    pub fn apply(&self, root: &mut Node) -> Result<(), Problem> {
        let problem = |message: String| Problem::new(&self.key, message).at(&self.origin);
        let Some(current) = root.get(&self.key) else {
            return match (self.operation, &self.value) {
                (Operation::Add | Operation::Force, Some(value)) => {
                    root.put(&self.key, value.clone()).ok_or_else(|| problem(format!("`{}` is no mapping", self.parent())))
                }
                _ => Err(unknown_key(&self.key, &root.keys(), self.operation != Operation::Delete).at(&self.origin)),
            };
        };
        let Some(value) = &self.value else {
            root.remove(&self.key);
            return Ok(());
        };
        let both_maps = matches!((&current.value, &value.value), (Value::Map(_), Value::Map(_)));
        match self.operation {
            Operation::Delete if current.value.same(&value.value) => {
                root.remove(&self.key);
            }
            Operation::Delete => {
                return Err(problem(format!("`{}` is {}, not {}", self.key, current.value.to_yaml(), value.value.to_yaml())));
            }
            Operation::Add if !both_maps => {
                let message = format!("`{}` is already there, so `+` cannot add it", self.key);
                return Err(
                    problem(message).help(format!("to change it, write {0}=…, or ++{0}=… to set it in any case", self.key))
                );
            }
            Operation::Change if both_maps => {
                let keys = current.keys();
                if let Some(new) = value.keys().iter().find(|key| !keys.contains(key)) {
                    let key = format!("{}.{new}", self.key);
                    return Err(unknown_key(&key, &root.keys(), true).at(&self.origin));
                }
                root.get_mut(&self.key).into_iter().for_each(|node| node.merge(value.clone()));
            }
            _ if both_maps => root.get_mut(&self.key).into_iter().for_each(|node| node.merge(value.clone())),
            _ => root.get_mut(&self.key).into_iter().for_each(|node| *node = value.clone()),
        }
        Ok(())
    }

    fn parent(&self) -> &str {
        self.key.rsplit_once('.').map_or("", |(parent, _)| parent)
    }
}

/// The problem of a key that does not exist, with the one that was probably meant.
pub fn unknown_key(key: &str, known: &[String], could_add: bool) -> Problem {
    let meant = suggest::did_you_mean(suggest::closest_key(key, known).as_deref());
    let add = could_add.then(|| format!("to add a key to a mapping that takes any, write +{key}=…"));
    let help: Vec<String> = meant.into_iter().chain(add).collect();
    let problem = Problem::new(key, format!("no such key `{key}`"));
    if help.is_empty() { problem } else { problem.help(help.join("\n")) }
}
