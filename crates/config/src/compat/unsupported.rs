//! Removes the keys that are not settings from the tree: silently at their defaults, otherwise reported or refused.

use super::adapt::Renamed;
use super::editions::{is_default, newest_defaults, parse};
use super::kind::Kind;
use super::row::{KeyRow, row};
use super::table::{KeyTreatment, VALUES};
use super::values::alike;
use burnish_hydra::{Ignored, Node, Problem, Value, inline, interpolation};

/// A tree, split into settings and other keys, with notes on the other keys.
pub struct SplitSettings {
    /// The settings of the tree, as written.
    pub settings: Node,
    /// The keys that are not settings, with `${…}` resolved.
    pub others: Node,
    pub ignored: Vec<Ignored>,
    /// Keys that were renamed to another key, or that set its value.
    pub renamed: Vec<Renamed>,
    /// Keys whose value was copied to a setting because of another key.
    pub copied: Vec<&'static str>,
    pub problems: Vec<Problem>,
}

/// Removes all keys from a tree that are in the table but not in the built-in configuration. `${…}` is unresolved in both trees,
/// so that a key that only refers to another key is not reported.
pub fn remove_unsupported(kind: Kind, written: &Node, defaults: &Node) -> SplitSettings {
    let mut sorter = Sorter { kind, defaults, removed: vec![], ignored: vec![] };
    let mut settings =
        sorter.settings("", written).unwrap_or_else(|| Node { value: Value::Map(Default::default()), ..written.clone() });
    let mut others = Node { value: Value::Map(Default::default()), ..written.clone() };
    for (key, node, _) in &sorter.removed {
        others.put(key, node.clone());
    }
    let (others, _) = interpolation::resolve_in(&others, written);
    let (mut ignored, mut problems, mut renamed) = (sorter.ignored, vec![], vec![]);
    let mut copied = vec![];
    for (key, node, row) in sorter.removed {
        let value = others.get(&key).map_or(&node.value, |resolved| &resolved.value);
        let is_default = [&node.value, value].into_iter().any(|value| has_no_effect(kind, &key, value, defaults));
        match row.treatment {
            _ if is_default => {}
            _ if row.is_section && !matches!(value, Value::Map(_)) => {
                let message = format!("`{key}` must be a mapping, not {}", inline(value));
                problems.push(Problem::new(&key, message).at(&node.origin).help("remove it, or set its keys"));
            }
            KeyTreatment::Refused(reason) => {
                let message = format!("`{key}` cannot be set: {reason}");
                let default = defaults.get(&key).map_or(String::new(), |node| format!("={}", node.value.to_yaml()));
                problems.push(
                    Problem::new(&key, message).at(&node.origin).help(format!("remove it, or leave it at its default{default}")),
                );
            }
            KeyTreatment::Ignored(reason) | KeyTreatment::Unread(reason) => {
                ignored.push(Ignored { key, value: inline(value), reason })
            }
            KeyTreatment::Sets(to, means) if *value == Value::Bool(true) => {
                settings.put(to, Node { origin: node.origin.clone(), ..parse(means).unwrap_or_else(|| node.clone()) });
                renamed.push(Renamed { from: key, to: to.into(), origin: node.origin });
            }
            KeyTreatment::SetsFrom(to, from) if *value == Value::Bool(true) => {
                let given = others.get(from).cloned().filter(|given| given.value != Value::Null);
                let verls = || newest_defaults(kind).find(|(known, _)| *known == from).and_then(|(_, text)| parse(text));
                if let (Some(value), None | Some(Node { value: Value::Null, .. })) = (given.or_else(verls), settings.get(to)) {
                    settings.put(to, Node { origin: node.origin.clone(), ..value });
                }
                copied.push(from);
                renamed.push(Renamed { from: key, to: to.into(), origin: node.origin });
            }
            KeyTreatment::Sets(..) | KeyTreatment::SetsFrom(..) if *value != Value::Bool(false) => {
                let message = format!("`{key}` must be true or false, not {}", inline(value));
                problems.push(Problem::new(&key, message).at(&node.origin));
            }
            KeyTreatment::Renamed(_) | KeyTreatment::Sets(..) | KeyTreatment::SetsFrom(..) => {}
        }
    }
    ignored.retain(|one| !copied.contains(&one.key.as_str()));
    SplitSettings { settings, others, ignored, renamed, copied, problems }
}

struct Sorter<'a> {
    kind: Kind,
    defaults: &'a Node,
    removed: Vec<(String, Node, KeyRow)>,
    /// The notes on values that were replaced.
    ignored: Vec<Ignored>,
}

impl Sorter<'_> {
    /// Returns the settings at and below a key; `None` without settings.
    fn settings(&mut self, key: &str, node: &Node) -> Option<Node> {
        let below = |name: &str| if key.is_empty() { name.to_string() } else { format!("{key}.{name}") };
        match &node.value {
            Value::Map(entries) if !entries.is_empty() => {
                let kept = entries.iter().filter_map(|(name, child)| Some((name.clone(), self.settings(&below(name), child)?)));
                let mut kept: Vec<(String, Node)> = kept.collect();
                // The keys get the order of the defaults; the order in the files does not matter.
                let known =
                    self.defaults.get(key).and_then(|node| if let Value::Map(map) = &node.value { Some(map) } else { None });
                kept.sort_by_key(|(name, _)| known.and_then(|known| known.get_index_of(name)).unwrap_or(usize::MAX));
                let is_setting = !kept.is_empty() || self.defaults.get(key).is_some();
                is_setting.then(|| Node {
                    value: Value::Map(kept.into_iter().collect()),
                    origin: node.origin.clone(),
                    through: node.through.clone(),
                })
            }
            _ => {
                let Some(row) = row(self.kind, key, self.defaults) else { return Some(self.available(key, node)) };
                self.removed.push((key.to_string(), node.clone(), row));
                let default = self.defaults.get(key)?;
                // A value that is required in verl (`???`) is not required here.
                Some(if matches!(&node.value, Value::Text(text) if text == "???") { default.clone() } else { node.clone() })
            }
        }
    }
}

impl Sorter<'_> {
    /// Returns a setting, with unsupported values replaced.
    fn available(&mut self, key: &str, node: &Node) -> Node {
        let Some((_, absent, instead, reason)) = VALUES.iter().find(|(of, ..)| *of == key) else { return node.clone() };
        let is_absent = |node: &Node| matches!(&node.value, Value::Text(name) if absent.contains(&name.as_str()));
        let items = if let Value::List(items) = &node.value { items.clone() } else { vec![node.clone()] };
        let (gone, mut kept): (Vec<Node>, Vec<Node>) = items.into_iter().partition(is_absent);
        if gone.is_empty() {
            return node.clone();
        }
        for item in &gone {
            self.ignored.push(Ignored { key: key.to_string(), value: inline(&item.value), reason });
        }
        let instead = Value::Text(instead.to_string());
        if !matches!(node.value, Value::List(_)) {
            return Node { value: instead, ..node.clone() };
        }
        if !kept.iter().any(|item| item.value == instead) {
            kept.push(Node::new(instead, node.origin.clone()));
        }
        Node { value: Value::List(kept), ..node.clone() }
    }
}

/// True if a value has no effect: null, empty, `???`, or a default of verl or of this program.
fn has_no_effect(kind: Kind, key: &str, value: &Value, defaults: &Node) -> bool {
    let unset = match value {
        Value::Null => true,
        Value::Map(entries) => entries.is_empty(),
        Value::Text(text) => text == "???",
        _ => false,
    };
    unset || defaults.get(key).is_some_and(|default| alike(&default.value, value)) || is_default(kind, key, value)
}
