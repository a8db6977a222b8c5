//! Look-up of a key in the table of verl's keys.

use super::editions;
use super::kind::Kind;
use super::patterns::{captures, filled, fits};
use super::table::KeyTreatment;
use super::values::{below_open_mapping, is_empty_mapping};
use burnish_hydra::{Node, Value, segments};
use std::sync::LazyLock;

/// The row of the table for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    pub pattern: String,
    pub treatment: KeyTreatment,
    /// The new name of the key, if it is renamed.
    pub target: Option<String>,
    /// True if the row is about the keys below this key, not about the key itself.
    pub is_section: bool,
}

/// Returns the row of a key; `None` if the key is a setting or unknown. `defaults`: the built-in configuration.
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
    let counts = |(pattern, treatment): &&Parts| {
        let is_setting = match treatment {
            KeyTreatment::Unread(_) => is_open || defaults.get(key).is_some(),
            KeyTreatment::Refused(_) if defaults.get(key).is_some_and(|node| !matches!(node.value, Value::Map(_))) => true,
            _ => is_open && pattern[0] == "**" && !names_entry(pattern),
        };
        !is_setting && fits(pattern, &parts)
    };
    let mut rows =
        rows.iter().filter(counts).filter_map(|(pattern, treatment)| Some((pattern, treatment, captures(pattern, &parts)?)));
    let (pattern, treatment, captured) = rows.find(|(pattern, _, captured)| is_anchored(kind, pattern, captured, defaults))?;
    let treatment = if let KeyTreatment::Unread(reason) = treatment { &KeyTreatment::Ignored(reason) } else { treatment };
    let is_section = pattern.last() == Some(&"**") && captured.last().is_some_and(String::is_empty);
    let target = match treatment {
        KeyTreatment::Renamed(to) => Some(filled(to, captured)),
        _ => None,
    };
    Some(KeyRow { pattern: pattern.join("."), treatment: *treatment, target, is_section })
}

/// True if the leading wildcard matches an existing section, so that a misspelt section stays an unknown key.
fn is_anchored(kind: Kind, pattern: &[&str], captured: &[String], defaults: &Node) -> bool {
    let exists = |section: &str| section.is_empty() || defaults.get(section).is_some() || editions::is_known(kind, section);
    match pattern {
        ["**", "_target_"] => true,
        ["**", ..] => captured.first().is_none_or(|section| exists(section)),
        _ => true,
    }
}

/// A pattern, split into parts, and the [`KeyTreatment`] of its keys.
type Parts = (Vec<&'static str>, KeyTreatment);

/// The rows of each kind with split patterns, since every key is compared with every row.
static ROWS: LazyLock<Vec<Vec<Parts>>> = LazyLock::new(|| {
    let in_parts = |kind: Kind| kind.rows().map(|(pattern, treatment)| (segments(pattern).collect(), *treatment)).collect();
    Kind::all().map(in_parts).collect()
});

/// Returns the reason why a key has no effect or takes only its default; `None` for settings.
pub fn reason(kind: Kind, key: &str, defaults: &Node) -> Option<&'static str> {
    match row(kind, key, defaults)?.treatment {
        KeyTreatment::Ignored(reason) | KeyTreatment::Unread(reason) | KeyTreatment::Refused(reason) => Some(reason),
        KeyTreatment::Renamed(_) | KeyTreatment::Sets(..) | KeyTreatment::SetsFrom(..) => None,
    }
}

/// Returns one sentence about a key of verl that is not a setting, for `config explain`.
pub fn explain(kind: Kind, key: &str, defaults: &Node) -> Option<String> {
    let row = row(kind, key, defaults)?;
    Some(match (row.treatment, row.target) {
        (KeyTreatment::Sets(to, value), _) => format!("write {to}={value} instead of `{key}=true`"),
        (KeyTreatment::SetsFrom(to, from), _) => format!("write {to}=… with the value of {from}, instead of `{key}=true`"),
        (_, Some(to)) => format!("`{key}` has the name `{to}` here"),
        (KeyTreatment::Ignored(reason), _) => format!("`{key}` is accepted and ignored: {reason}"),
        (KeyTreatment::Refused(reason), _) => format!("`{key}` can only keep its default: {reason}"),
        _ => return None,
    })
}
