//! Removes the keys that are not settings from the tree: silently at their defaults, otherwise reported or refused.

use super::adapt::Renamed;
use super::editions::{is_default, newest_defaults, parse};
use super::kind::Kind;
use super::row::{KeyRow, row};
use super::table::{Fate, VALUES};
use super::values::alike;
use burnish_hydra::{Ignored, Node, Problem, Value, inline, interpolation};

/// The settings of a tree, and the notes about its other keys.
pub struct Aside {
    /// The settings of the tree, as written.
    pub settings: Node,
    /// The keys that are no settings, with `${…}` resolved.
    pub others: Node,
    pub ignored: Vec<Ignored>,
    /// Keys that set the value of another key.
    pub renamed: Vec<Renamed>,
    /// Keys whose value is used because another key chooses it.
    pub chosen: Vec<&'static str>,
    pub problems: Vec<Problem>,
}

/// Removes everything from a tree that is in the table and not in the built-in configuration. Both are as written, with `${…}`
/// unresolved, so that a key that merely refers to another one is not reported.
pub fn set_aside(kind: Kind, written: &Node, defaults: &Node) -> Aside {
    let mut sorter = Sorter { kind, defaults, aside: vec![], ignored: vec![] };
    let mut settings =
        sorter.settings("", written).unwrap_or_else(|| Node { value: Value::Map(Default::default()), ..written.clone() });
    let mut others = Node { value: Value::Map(Default::default()), ..written.clone() };
    for (key, node, _) in &sorter.aside {
        others.put(key, node.clone());
    }
    let (others, _) = interpolation::resolve_in(&others, written);
    let (mut ignored, mut problems, mut renamed) = (sorter.ignored, vec![], vec![]);
    let mut chosen = vec![];
    for (key, node, row) in sorter.aside {
        let value = others.get(&key).map_or(&node.value, |resolved| &resolved.value);
        let is_default = [&node.value, value].into_iter().any(|value| says_nothing(kind, &key, value, defaults));
        match row.fate {
            _ if is_default => {}
            _ if row.is_section && !matches!(value, Value::Map(_)) => {
                let message = format!("`{key}` must be a mapping, not {}", inline(value));
                problems.push(Problem::new(&key, message).at(&node.origin).help("remove it, or set its keys"));
            }
            Fate::Refused(reason) => {
                let message = format!("`{key}` cannot be set: {reason}");
                let default = defaults.get(&key).map_or(String::new(), |node| format!("={}", node.value.to_yaml()));
                problems.push(
                    Problem::new(&key, message).at(&node.origin).help(format!("remove it, or leave it at its default{default}")),
                );
            }
            Fate::Ignored(reason) | Fate::Unread(reason) => ignored.push(Ignored { key, value: inline(value), reason }),
            Fate::Means(to, means) if *value == Value::Bool(true) => {
                settings.put(to, Node { origin: node.origin.clone(), ..parse(means).unwrap_or_else(|| node.clone()) });
                renamed.push(Renamed { from: key, to: to.into(), origin: node.origin });
            }
            Fate::Chooses(to, from) if *value == Value::Bool(true) => {
                let given = others.get(from).cloned().filter(|given| given.value != Value::Null);
                let verls = || newest_defaults(kind).find(|(known, _)| *known == from).and_then(|(_, text)| parse(text));
                if let (Some(value), None | Some(Node { value: Value::Null, .. })) = (given.or_else(verls), settings.get(to)) {
                    settings.put(to, Node { origin: node.origin.clone(), ..value });
                }
                chosen.push(from);
                renamed.push(Renamed { from: key, to: to.into(), origin: node.origin });
            }
            Fate::Means(..) | Fate::Chooses(..) if *value != Value::Bool(false) => {
                let message = format!("`{key}` must be true or false, not {}", inline(value));
                problems.push(Problem::new(&key, message).at(&node.origin));
            }
            Fate::Renamed(_) | Fate::Means(..) | Fate::Chooses(..) => {}
        }
    }
    ignored.retain(|one| !chosen.contains(&one.key.as_str()));
    Aside { settings, others, ignored, renamed, chosen, problems }
}

struct Sorter<'a> {
    kind: Kind,
    defaults: &'a Node,
    aside: Vec<(String, Node, KeyRow)>,
    /// The values that were replaced.
    ignored: Vec<Ignored>,
}

impl Sorter<'_> {
    /// Returns the settings at and below a key; `None` if there are none.
    fn settings(&mut self, key: &str, node: &Node) -> Option<Node> {
        let below = |name: &str| if key.is_empty() { name.to_string() } else { format!("{key}.{name}") };
        match &node.value {
            Value::Map(entries) if !entries.is_empty() => {
                let kept = entries.iter().filter_map(|(name, child)| Some((name.clone(), self.settings(&below(name), child)?)));
                let mut kept: Vec<(String, Node)> = kept.collect();
                // The keys are in the order of the defaults, whatever the order of the files.
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
                self.aside.push((key.to_string(), node.clone(), row));
                let default = self.defaults.get(key)?;
                // A value that verl requires (`???`) is not required here.
                Some(if matches!(&node.value, Value::Text(text) if text == "???") { default.clone() } else { node.clone() })
            }
        }
    }
}

impl Sorter<'_> {
    /// Returns a setting, with values that are not available here replaced.
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

/// True if a value has no effect: it is unset, missing (`???`), or a default of verl's or of this program.
fn says_nothing(kind: Kind, key: &str, value: &Value, defaults: &Node) -> bool {
    let unset = match value {
        Value::Null => true,
        Value::Map(entries) => entries.is_empty(),
        Value::Text(text) => text == "???",
        _ => false,
    };
    unset || defaults.get(key).is_some_and(|default| alike(&default.value, value)) || is_default(kind, key, value)
}
