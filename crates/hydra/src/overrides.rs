//! Overrides of the command line: `key=value`, `+key=value`, `++key=value`, `~key`, `group=option`.

use super::error::Problem;
use super::grammar::{self, SyntaxError};
use super::interpolation;
use super::merge::{self, Keys};
use super::provenance::{Mark, Origin, YamlSource};
use super::suggest::{Addition, unknown_key};
use super::tree::{Node, Value, below};
use std::sync::Arc;

/// The maximum number of parts of a dotted key.
const MAX_PARTS: usize = 100;

/// The operation of an override on its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// `key=value`: the key must exist.
    Change,
    /// `+key=value`: the key must not exist.
    Add,
    /// `++key=value`: the key may exist.
    Force,
    /// `~key` or `~key=value`: the key must exist, with this value if one is given.
    Delete,
}

/// One override, parsed.
#[derive(Debug, Clone)]
pub struct Override {
    pub operation: Operation,
    /// The dotted key, or the group.
    pub key: String,
    /// The package after the `@` of `group@package`.
    pub package: Option<String>,
    /// `None` for `~key`.
    pub value: Option<Node>,
    pub origin: Origin,
}

/// Parses one command-line word.
pub fn parse(text: &str) -> Result<Override, Problem> {
    let origin = Origin::Override(Arc::from(text));
    let operations = [("++", Operation::Force), ("+", Operation::Add), ("~", Operation::Delete)];
    let (sign, operation) = operations.into_iter().find(|(sign, _)| text.starts_with(sign)).unwrap_or(("", Operation::Change));
    let rest = &text[sign.len()..];
    let (name, value) = match rest.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None if operation == Operation::Delete => (rest, None),
        None => {
            let message = format!("`{text}` is not an override: write key=value");
            return Err(Problem::new("", message).at(&origin).help("to delete a key, write ~key"));
        }
    };
    let (key, package) = name.split_once('@').map_or((name, None), |(key, package)| (key, Some(package.to_string())));
    check_key(name, key, package.as_deref())
        .map_err(|(error, help)| Problem::new("", error.message).at(&position(text, sign.len() + error.at)).help(help))?;
    let start = text.len() - value.map_or(0, str::len);
    let read = |value| {
        let node = grammar::parse_value(value, &origin)?;
        interpolation::check(&node.value).map_or(Ok(node), |error| Err(SyntaxError { at: 0, ..error }))
    };
    let node = value.map(read);
    let node = node.transpose().map_err(|error| {
        let message = format!("the value of `{key}` cannot be read: {}", error.message);
        Problem::new(key, message).at(&position(text, start + error.at))
    })?;
    Ok(Override { operation, key: key.to_string(), package, value: node, origin })
}

/// Returns the line and column of a byte of an override, for messages.
pub(crate) fn position(text: &str, at: usize) -> Origin {
    let mark = Mark { line: 1, column: 1 + text[..at.min(text.len())].chars().count() };
    let source = Arc::new(YamlSource { name: "override".into(), text: text.to_string() });
    Origin::File { source, key: mark, value: mark }
}

/// Checks that the part before the `=` is a dotted key, or a group with its package. The error is the syntax error and advice.
fn check_key(name: &str, key: &str, package: Option<&str>) -> Result<(), (SyntaxError, &'static str)> {
    if let Some((at, bad)) = name.char_indices().find(|(_, c)| !(c.is_ascii_alphanumeric() || "_-./@$".contains(*c))) {
        let help = match bad {
            '[' => "write an item of a list as key.0=value",
            ' ' => "write no space before the key or around the =",
            _ => "write a key as words with dots between them",
        };
        return Err((SyntaxError { at, message: format!("`{bad}` is not allowed in a key") }, help));
    }
    if [Some(key), package].into_iter().flatten().any(|key| key.split('.').count() > MAX_PARTS) {
        let message = format!("this key is nested too deeply: it has more than {MAX_PARTS} parts");
        return Err((SyntaxError { at: 0, message }, "write a key as part.part.part"));
    }
    let word = |part: &str| part.replace('$', "_").starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let number =
        |part: &str| part == "0" || !part.starts_with('0') && part.bytes().all(|b| b.is_ascii_digit()) && !part.is_empty();
    let dotted = |key: &str| key.split('.').all(|part| word(part) || number(part)) && (key.contains('.') || word(key));
    let is_group = key.contains('/') && key.split('/').all(grammar::is_name);
    if !(is_group || dotted(key)) || !package.is_none_or(dotted) {
        let message = format!("`{name}` is not a key");
        return Err((SyntaxError { at: 0, message }, "write a key as part.part.part, a group as group/group@part.part"));
    }
    Ok(())
}

impl Override {
    /// Applies the override to the tree, by Hydra's rules.
    pub fn apply(self, root: &mut Node) -> Result<(), Problem> {
        if let Some(package) = &self.package {
            let message = format!("`@{package}` follows a group, but there is no group `{}`", self.key);
            return Err(self
                .problem(message)
                .help("a group is a folder with configuration files; to set a key, write key=value"));
        }
        match self.operation {
            Operation::Delete => self.delete(root),
            Operation::Add => {
                let is_container = matches!(self.value, Some(Node { value: Value::Map(_) | Value::List(_), .. }));
                if !is_container && interpolation::select(root, &self.key).map_err(|problem| self.because(&problem))?.is_some() {
                    let message = format!("`{}` already exists, so `+` cannot add it", self.key);
                    let help = format!("to change it, write {0}=…, or ++{0}=… to set it in any case", self.key);
                    return Err(self.problem(message).help(help));
                }
                self.set(root, Keys::MayBeNew)
            }
            Operation::Force => self.set(root, Keys::MayBeNew),
            Operation::Change => self.set(root, Keys::MustExist),
        }
    }

    fn delete(self, root: &mut Node) -> Result<(), Problem> {
        let Some(current) = interpolation::select(root, &self.key).map_err(|problem| self.because(&problem))? else {
            return Err(match root.get(&self.key) {
                Some(_) => self.problem(format!("`{}` cannot be deleted: its value is null or `???`", self.key)),
                None => unknown_key(&self.key, &root.keys(), Addition::No).at(&self.origin),
            });
        };
        if let Some(value) = self.value.as_ref().map(|node| &node.value).filter(|value| **value != Value::Null)
            && !python_equal(&current.value, value)
        {
            return Err(self.problem(format!("`{}` is {}, not {}", self.key, current.value.to_yaml(), value.to_yaml())));
        }
        // If the path of the key contains an interpolation, the key is deleted at its target, as in Hydra.
        let (parent, last) = self.key.rsplit_once('.').unwrap_or(("", &self.key));
        match interpolation::final_key(root, parent).and_then(|parent| root.remove(&below(&parent, last))) {
            Some(_) => Ok(()),
            None => Err(self
                .problem(format!("`{}` cannot be deleted: it is an item of a list", self.key))
                .help("give the whole list: key=[a,b]")),
        }
    }

    /// Sets the value at its key. If new keys are allowed, a value in the path that is not a mapping or list becomes a mapping.
    fn set(self, root: &mut Node, keys: Keys) -> Result<(), Problem> {
        let (parent, last) = self.key.rsplit_once('.').unwrap_or(("", &self.key));
        let mut path = String::new();
        for part in parent.split('.').filter(|part| !part.is_empty()) {
            let key = below(&path, part);
            let is_container = root.get(&key).is_some_and(|node| matches!(node.value, Value::Map(_) | Value::List(_)));
            if !is_container && keys == Keys::MustExist {
                return Err(self.unknown(root, &path, &key));
            }
            if !is_container {
                self.place_one(root, &path, part, Node::new(Value::Map(Default::default()), self.origin.clone()), keys)?;
            }
            path = key;
        }
        let Some(value) = self.value.clone() else { return Ok(()) };
        let both_containers = matches!(value.value, Value::Map(_) | Value::List(_))
            && root.get(&self.key).is_some_and(|node| matches!(node.value, Value::Map(_) | Value::List(_)));
        if both_containers {
            return merge::merge(root, &self.key, value, keys);
        }
        self.place_one(root, &path, last, value, keys)
    }

    /// Sets the node under a name of the mapping or list at `parent`.
    fn place_one(&self, root: &mut Node, parent: &str, name: &str, node: Node, keys: Keys) -> Result<(), Problem> {
        let Some(at) = root.get_mut(parent) else { return Ok(()) };
        if let Some(there) = at.child_mut(name) {
            *there = node;
            return Ok(());
        }
        match &mut at.value {
            Value::List(items) => {
                let (parent, length) = (parent.to_string(), items.len());
                let message = format!("`{parent}` is a list of {length}, so there is no item `{name}`: items are counted from 0");
                Err(self.problem(message).help(format!("give the whole list: {parent}=[a,b]")))
            }
            Value::Map(map) if keys == Keys::MayBeNew => {
                map.insert(name.to_string(), node);
                Ok(())
            }
            _ => Err(self.unknown(root, parent, &self.key)),
        }
    }

    /// Returns the problem of a key that does not exist; `missing`: the first part of its path without a mapping, below `parent`.
    fn unknown(&self, root: &Node, parent: &str, missing: &str) -> Problem {
        let is_open = matches!(root.get(parent), Some(Node { value: Value::Map(map), .. }) if map.is_empty());
        match root.get(missing).map(|node| &node.value) {
            None => unknown_key(&self.key, &root.keys(), if is_open { Addition::Likely } else { Addition::Maybe }),
            Some(value) => Problem::new(&self.key, format!("no such key `{}`", self.key))
                .help(format!("`{missing}` is of type {}, which has no keys", value.kind())),
        }
        .at(&self.origin)
    }

    fn problem(&self, message: impl Into<String>) -> Problem {
        Problem::new(&self.key, message).at(&self.origin)
    }

    /// Returns the problem of an override whose current value cannot be resolved.
    fn because(&self, problem: &Problem) -> Problem {
        let at = problem.origin.as_ref().map_or(String::new(), |origin| format!(" ({origin})"));
        self.problem(format!("the current value of `{}` cannot be resolved: {}{at}", self.key, problem.message))
    }
}

/// True if two values are equal in Python, where `1`, `1.0` and `true` are equal.
fn python_equal(a: &Value, b: &Value) -> bool {
    let number = |value: &Value| match value {
        Value::Bool(value) => Some(f64::from(*value)),
        Value::Int(value) => Some(*value as f64),
        Value::Float(value) => Some(*value),
        _ => None,
    };
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a == b,
        _ => a.same(b),
    }
}
