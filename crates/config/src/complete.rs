//! Completion of overrides on the command line: keys one level at a time, then the values of a key.

use super::Choices;
use super::accepts::{Accepts, like};
use super::comment::Comment;
use super::compat::inline;
use super::kinds::ConfigKind;
use burnish_hydra::{ConfigError, Node, Value, interpolation};

/// Returns the completions of the partial override `word`. A key with keys below it ends in a dot.
///
/// # Errors
/// If the built-in files do not compose; tests exclude this.
pub fn complete(known: &ConfigKind, choices: &Choices, word: &str) -> Result<Vec<String>, ConfigError> {
    let written = known.defaults()?.root;
    let prefix = ["++", "+", "~"].into_iter().find(|prefix| word.starts_with(prefix)).unwrap_or("");
    let rest = &word[prefix.len()..];
    Ok(match rest.split_once('=') {
        Some((key, typed)) => {
            let values = values(&written, choices, key);
            values.iter().filter(|value| value.starts_with(typed)).map(|value| format!("{prefix}{key}={value}")).collect()
        }
        None => keys(&written, prefix, rest).into_iter().map(|key| format!("{prefix}{key}")).collect(),
    })
}

/// Returns the completions of the partial key `prefix` for a command that takes a key without a value.
///
/// # Errors
/// If the built-in files do not compose; tests exclude this.
pub fn complete_key(known: &ConfigKind, prefix: &str) -> Result<Vec<String>, ConfigError> {
    // A deletion has no value either.
    Ok(keys(&known.defaults()?.root, "~", prefix))
}

/// Returns the keys that begin with `typed`, each up to its next dot. After `+`, which adds a key, only mappings that take any
/// key are returned.
fn keys(written: &Node, prefix: &str, typed: &str) -> Vec<String> {
    let mut found: Vec<String> = vec![];
    written.walk(&mut |key, node| {
        let end = match &node.value {
            Value::Map(entries) if !entries.is_empty() => return,
            _ if prefix == "~" => "",
            Value::Map(_) => ".",
            _ if prefix == "+" => return,
            _ => "=",
        };
        let Some(more) = key.strip_prefix(typed) else { return };
        if key.match_indices('.').any(|(dot, _)| !is_mapping(written, &key[..dot])) {
            return;
        }
        let shown = match more.find('.') {
            Some(dot) => format!("{typed}{}", &more[..=dot]),
            None => format!("{key}{end}"),
        };
        if !found.contains(&shown) {
            found.push(shown);
        }
    });
    found
}

fn is_mapping(written: &Node, key: &str) -> bool {
    written.get(key).is_some_and(|node| matches!(node.value, Value::Map(_)))
}

/// Returns the literal values of a key: names, `null`, `true`, `false`, and its default.
pub fn values(written: &Node, choices: &Choices, key: &str) -> Vec<String> {
    let is_section = |node: &&Node| matches!(&node.value, Value::Map(entries) if !entries.is_empty());
    let Some(node) = written.get(key).filter(|node| !is_section(node)) else { return vec![] };
    let (resolved, _) = interpolation::resolve(written);
    let default = resolved.get(key).map_or(&node.value, |node| &node.value);
    let mut values: Vec<String> = vec![];
    let mut add = |value: String| {
        if !values.contains(&value) {
            values.push(value);
        }
    };
    choices.for_key(key).for_each(|choice| add(choice.name.to_string()));
    for accepts in Comment::for_node(node).accepts().unwrap_or_else(|| like(default)) {
        match accepts {
            // In an override, infinity has no dot.
            Accepts::One(Value::Float(value)) if value.is_infinite() => add(value.to_string()),
            Accepts::One(value) => add(inline(&value)),
            _ => {}
        }
    }
    // Null is a default that completes nothing, unless the comment lists it.
    let default = Some(default).filter(|default| **default != Value::Null).map(inline);
    default.filter(|default| !default.contains(' ')).into_iter().for_each(add);
    values
}
