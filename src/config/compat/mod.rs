//! Files and overrides written for verl: which of its keys are settings here, and how the others are treated.
//!
//! [`table`] says it, `adapt` does it on the way in, [`set_aside`] takes out what is no setting and reports it.
//! [`editions`] are verl's own keys and defaults, to tell what was changed and to check that the table knows them all; [`files`] are
//! the files they come from.

pub mod editions;
pub mod files;
pub mod page;
pub mod table;

mod adapt;
mod compose;
mod set_aside;

pub use crate::hydra::{Ignored, inline, summary};
pub use adapt::{NULL_IS_UNSET, Renamed, Verl, leaves, module_names};
pub use compose::compose_edition;
pub use set_aside::{Aside, set_aside};
pub use table::{Fate, Kind};

use crate::hydra::{Node, Value, segments};
use std::sync::LazyLock;

/// The entry of the table for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub pattern: String,
    pub fate: Fate,
    /// The name of the key here, if it is renamed.
    pub target: Option<String>,
    /// True if the row is about the keys below this one rather than the key itself.
    pub is_section: bool,
}

/// Returns the row of a key; `None` if it is a setting here, or unknown. `defaults` is the built-in configuration.
pub fn row(kind: Kind, key: &str, defaults: &Node) -> Option<Row> {
    let parts: Vec<&str> = segments(key).collect();
    let is_open = below_open_mapping(key, defaults);
    let rows = &ROWS[kind as usize];
    let counts = |(pattern, fate): &&Parts| {
        let is_setting = match fate {
            Fate::Unread(_) => is_open || defaults.get(key).is_some(),
            _ => is_open && pattern[0] == "**",
        };
        !is_setting && fits(pattern, &parts)
    };
    let mut rows = rows.iter().filter(counts).filter_map(|(pattern, fate)| Some((pattern, fate, captures(pattern, &parts)?)));
    let (pattern, fate, captured) = rows.find(|(pattern, _, captured)| is_anchored(kind, pattern, captured, defaults))?;
    let fate = if let Fate::Unread(reason) = fate { &Fate::Ignored(reason) } else { fate };
    let is_section = pattern.last() == Some(&"**") && captured.last().is_some_and(String::is_empty);
    let target = match fate {
        Fate::Renamed(to) => Some(filled(to, captured)),
        _ => None,
    };
    Some(Row { pattern: pattern.join("."), fate: *fate, target, is_section })
}

/// True if a wildcard stands for something that exists, so that a misspelt section is an unknown key.
fn is_anchored(kind: Kind, pattern: &[&str], captured: &[String], defaults: &Node) -> bool {
    let exists = |section: &str| section.is_empty() || defaults.get(section).is_some() || editions::is_known(kind, section);
    match pattern {
        ["**", "_target_"] => true,
        ["**", ..] => captured.first().is_none_or(|section| exists(section)),
        _ => true,
    }
}

/// A pattern in parts, and the [`Fate`] of its keys.
type Parts = (Vec<&'static str>, Fate);

/// The rows of each kind, with their patterns in parts, since every key is compared with every row.
static ROWS: LazyLock<Vec<Vec<Parts>>> = LazyLock::new(|| {
    let in_parts = |kind: Kind| kind.rows().map(|(pattern, fate)| (segments(pattern).collect(), *fate)).collect();
    Kind::ALL.into_iter().map(in_parts).collect()
});

/// Returns the reason why a key has no effect, or takes only its default; `None` for settings.
pub fn reason(kind: Kind, key: &str, defaults: &Node) -> Option<&'static str> {
    match row(kind, key, defaults)?.fate {
        Fate::Ignored(reason) | Fate::Unread(reason) | Fate::Refused(reason) => Some(reason),
        Fate::Renamed(_) | Fate::Means(..) | Fate::Chooses(..) => None,
    }
}

/// Returns one sentence about a key of verl that is not a setting here, for `config explain`.
pub fn explain(kind: Kind, key: &str, defaults: &Node) -> Option<String> {
    let row = row(kind, key, defaults)?;
    Some(match (row.fate, row.target) {
        (Fate::Means(to, value), _) => format!("`{key}=true` is written {to}={value} here"),
        (Fate::Chooses(to, from), _) => format!("`{key}=true` is written {to}=… here, with the value of {from}"),
        (_, Some(to)) => format!("`{key}` is called `{to}` here"),
        (Fate::Ignored(reason), _) => format!("`{key}` is accepted and ignored: {reason}"),
        (Fate::Refused(reason), _) => format!("`{key}` can only keep its default: {reason}"),
        _ => return None,
    })
}

/// True if the key is inside a mapping that takes any key.
fn below_open_mapping(key: &str, defaults: &Node) -> bool {
    let ancestors = std::iter::successors(key.rsplit_once('.'), |(parent, _)| parent.rsplit_once('.'));
    ancestors.map(|(parent, _)| parent).any(|parent| is_empty_mapping(defaults.get(parent)))
}

fn is_empty_mapping(node: Option<&Node>) -> bool {
    matches!(node, Some(Node { value: Value::Map(entries), .. }) if entries.is_empty())
}

/// True if two values are equal; an integer and a float may be equal numbers.
pub fn alike(a: &Value, b: &Value) -> bool {
    let number = |value: &Value| match value {
        Value::Int(value) => Some(*value as f64),
        Value::Float(value) => Some(*value),
        _ => None,
    };
    match (a, b) {
        (Value::List(a), Value::List(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(&a.value, &b.value)),
        _ => number(a).zip(number(b)).map_or_else(|| a.same(b), |(a, b)| a == b),
    }
}

/// True if a dotted pattern matches a dotted key: `*` is one part or the rest of one, `**` any number of parts.
pub fn fits_key(pattern: &str, key: &str) -> bool {
    fits(&segments(pattern).collect::<Vec<_>>(), &segments(key).collect::<Vec<_>>())
}

/// True if a pattern matches a key.
fn fits(pattern: &[&str], key: &[&str]) -> bool {
    match (pattern, key) {
        (["**", rest @ ..], _) => (0..=key.len()).any(|taken| fits(rest, &key[taken..])),
        ([first, rest @ ..], [part, below @ ..]) => part_fits(first, part) && fits(rest, below),
        _ => pattern.is_empty() && key.is_empty(),
    }
}

fn part_fits(pattern: &str, part: &str) -> bool {
    pattern == part || pattern.split_once('*').is_some_and(|(head, tail)| part.starts_with(head) && part.ends_with(tail))
}

/// Returns the parts of a key that the wildcards of a pattern match; `None` if the pattern does not match.
fn captures(pattern: &[&str], key: &[&str]) -> Option<Vec<String>> {
    match (pattern, key) {
        (["**", rest @ ..], _) => (0..=key.len()).find_map(|taken| {
            let below = captures(rest, &key[taken..])?;
            Some(std::iter::once(key[..taken].join(".")).chain(below).collect())
        }),
        ([first, rest @ ..], [part, below @ ..]) if part_fits(first, part) => {
            let own = first.contains('*').then(|| part.to_string());
            Some(own.into_iter().chain(captures(rest, below)?).collect())
        }
        _ => (pattern.is_empty() && key.is_empty()).then(Vec::new),
    }
}

/// Returns a new name, with its wildcards replaced by the parts that those of the old one matched.
fn filled(name: &str, captured: Vec<String>) -> String {
    let mut captured = captured.into_iter();
    let parts = name.split('.').map(|part| if part.contains('*') { captured.next().unwrap_or_default() } else { part.into() });
    parts.filter(|part: &String| !part.is_empty()).collect::<Vec<_>>().join(".")
}
