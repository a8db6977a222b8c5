//! The entry of the table for a key.

use super::editions;
use super::kind::Kind;
use super::patterns::{captures, filled, fits};
use super::table::Fate;
use super::values::{below_open_mapping, is_empty_mapping};
use burnish_hydra::{Node, Value, segments};
use std::sync::LazyLock;

/// The entry of the table for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    pub pattern: String,
    pub fate: Fate,
    /// The name of the key here, if it is renamed.
    pub target: Option<String>,
    /// True if the row is about the keys below this one rather than the key itself.
    pub is_section: bool,
}

/// Returns the row of a key; `None` if it is a setting here, or unknown. `defaults` is the built-in configuration.
pub fn row(kind: Kind, key: &str, defaults: &Node) -> Option<KeyRow> {
    let parts: Vec<&str> = segments(key).collect();
    let is_open = below_open_mapping(key, defaults);
    // A row may name an entry of a mapping that takes any key, such as `**.override_optimizer_config.optimizer_cpu_offload`.
    let parent = key.rsplit_once('.').map_or("", |(parent, _)| parent);
    let names_entry = |pattern: &[&str]| {
        let same = parts.len() > 1 && pattern.iter().rev().nth(1) == parts.iter().rev().nth(1);
        same && pattern.last() != Some(&"**") && is_empty_mapping(defaults.get(parent))
    };
    let rows = &ROWS[kind as usize];
    let counts = |(pattern, fate): &&Parts| {
        let is_setting = match fate {
            Fate::Unread(_) => is_open || defaults.get(key).is_some(),
            Fate::Refused(_) if defaults.get(key).is_some_and(|node| !matches!(node.value, Value::Map(_))) => true,
            _ => is_open && pattern[0] == "**" && !names_entry(pattern),
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
    Some(KeyRow { pattern: pattern.join("."), fate: *fate, target, is_section })
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
    Kind::all().map(in_parts).collect()
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
