//! On the way in: keys of verl that are called otherwise here take their new names, and those that are no settings may be
//! written as if they were there.

use super::super::error::Problem;
use super::super::grammar;
use super::super::hydra::Adapt;
use super::super::overrides::{Operation, Override};
use super::super::provenance::Origin;
use super::super::tree::{Node, Value};
use super::editions::is_default;
use super::{Fate, Kind, Row, alike, row};
use std::cell::RefCell;
use std::fmt;

/// Sections whose nulls mean "not set": verl of 2026-08 keeps old names as empty places, verl of 2025 wrote null for 0 and -1 in
/// the schedules, and null for the tokenizer of the critic's own model.
const NULL_IS_UNSET: &[&str] =
    &["reward_model.", "custom_reward_function.", "critic.", "actor_rollout_ref.actor.optim.", "optim."];

/// A key that was written under another name.
#[derive(Debug, Clone, PartialEq)]
pub struct Renamed {
    pub from: String,
    pub to: String,
    pub origin: Origin,
}

impl fmt::Display for Renamed {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "`{}` is an old name: write `{}` ({})", self.from, self.to, self.origin)
    }
}

/// Adapts what was written for verl to one kind of configuration.
pub struct Verl<'a> {
    kind: Kind,
    /// The built-in configuration, as written.
    defaults: &'a Node,
    renamed: RefCell<Vec<Renamed>>,
    deleted: RefCell<Vec<(String, Origin)>>,
}

impl<'a> Verl<'a> {
    pub fn new(kind: Kind, defaults: &'a Node) -> Self {
        Self { kind, defaults, renamed: RefCell::default(), deleted: RefCell::default() }
    }

    /// The keys that were renamed so far.
    pub fn renamed(&self) -> Vec<Renamed> {
        self.renamed.borrow().clone()
    }

    /// Lets `${old.name}` find what is now under the new name.
    pub fn add_old_names(&self, root: &mut Node) {
        for (old, fate) in self.kind.rows().filter(|(pattern, _)| !pattern.contains('*')) {
            if let Fate::Renamed(new) | Fate::RenamedUnless(new, _) = fate
                && root.get(old).is_none()
            {
                // Some of verl's files let the new name fall back on the old one.
                let last = old.rsplit('.').next().unwrap_or(old);
                let falls_back =
                    root.get(new).is_some_and(|node| matches!(&node.value, Value::Text(text) if text.contains(last)));
                let value = if falls_back { Value::Null } else { Value::Text(format!("${{{new}}}")) };
                root.put(old, Node::new(value, root.origin.clone()));
            }
        }
    }

    /// Gives every setting that no file gives its built-in default. One that an override deleted is a problem.
    pub fn fill(&self, root: &mut Node) -> Vec<Problem> {
        let deleted = self.deleted.borrow();
        let mut problems: Vec<Problem> = vec![];
        self.defaults.walk(&mut |key, default| {
            let (parent, name) = key.rsplit_once('.').unwrap_or(("", key));
            let is_missing = |node: &Node| matches!(node.value, Value::Map(_)) && node.child(name).is_none();
            if !root.get(parent).is_some_and(is_missing) || super::below_open_mapping(key, self.defaults) {
                return;
            }
            if let Some((_, origin)) = deleted.iter().find(|(gone, _)| gone == key) {
                let help = default.value.plain_text().map_or(String::new(), |text| format!("its default is {text}"));
                problems.push(Problem::new(key, format!("`{key}` cannot be deleted: a run needs it")).at(origin).help(help));
            }
            root.put(key, default.clone());
        });
        problems
    }

    fn row(&self, key: &str) -> Option<Row> {
        row(self.kind, key, self.defaults)
    }

    fn note(&self, from: &str, to: &str, value: &Value, origin: &Origin) {
        if !is_default(self.kind, from, value) || matches!(origin, Origin::Override(_)) {
            self.renamed.borrow_mut().push(Renamed { from: from.into(), to: to.into(), origin: origin.clone() });
        }
    }

    /// The key and value that an old key stands for; `None` if it says nothing.
    fn translated(&self, row: &Row, value: &Value, origin: &Origin) -> Option<(String, Node)> {
        let to = row.target.clone()?;
        let as_written = Node::new(value.clone(), origin.clone());
        match (row.fate, value) {
            (_, Value::Null) => None,
            (Fate::RenamedUnless(_, nothing), Value::Text(text)) if text == nothing => None,
            (Fate::Means(_, means), Value::Bool(true)) => Some((to, grammar::parse_value(means, origin).ok()?)),
            (Fate::Means(..), Value::Bool(false)) => None,
            (Fate::Renamed(_) | Fate::RenamedUnless(..) | Fate::Means(..), _) => Some((to, as_written)),
            (Fate::Ignored(_) | Fate::Unread(_) | Fate::Refused(_), _) => None,
        }
    }

    /// Moves the old keys of one file to their new names.
    fn rename(&self, body: &mut Node) -> Result<(), Problem> {
        let mut old = vec![];
        leaves("", body, &mut |key, node| {
            if let Some(row) = self.row(key).filter(|row| row.target.is_some()) {
                old.push((key.to_string(), row, node.clone()));
            }
        });
        for (key, row, node) in old {
            remove(body, &key);
            let follows = matches!(&node.value, Value::Text(text) if text.contains("${"));
            if follows && is_default(self.kind, &key, &node.value) {
                continue;
            }
            let Some((to, value)) = self.translated(&row, &node.value, &node.origin) else { continue };
            match body.get(&to).filter(|there| there.value != Value::Null) {
                Some(there) if follows || alike(&there.value, &value.value) || is_default(self.kind, &key, &node.value) => {}
                Some(there) => {
                    let message =
                        format!("`{key}` and `{to}` are the same setting, with two values; the other is at {}", there.origin);
                    return Err(Problem::new(&key, message).at(&node.origin).help(format!("remove `{key}`")));
                }
                None => {
                    self.note(&key, &to, &node.value, &node.origin);
                    body.put(&to, value);
                }
            }
        }
        Ok(())
    }
}

impl Adapt for Verl<'_> {
    fn file(&self, mut body: Node) -> Result<Node, Problem> {
        self.rename(&mut body)?;
        let mut unset = vec![];
        leaves("", &body, &mut |key, node| {
            let empty = node.value == Value::Null && NULL_IS_UNSET.iter().any(|section| key.starts_with(section));
            if empty && self.defaults.get(key).is_some_and(|default| default.value != Value::Null) {
                unset.push(key.to_string());
            }
        });
        unset.iter().for_each(|key| remove(&mut body, key));
        Ok(body)
    }

    fn overriding(&self, one: Override, root: &Node) -> Result<Option<Override>, Problem> {
        let force = |one: Override| Override { operation: Operation::Force, ..one };
        match (self.row(&one.key), &one.value) {
            (Some(Row { target: Some(_), .. }), None) => Ok(None),
            (Some(row @ Row { target: Some(_), .. }), Some(given)) => {
                let Some((key, value)) = self.translated(&row, &given.value, &one.origin) else { return Ok(None) };
                self.note(&one.key, &key, &given.value, &one.origin);
                let is_set = root.get(&key).is_some_and(|node| node.value != Value::Null);
                let keeps = matches!(row.fate, Fate::Means(..)) && is_set;
                Ok((!keeps).then(|| force(Override { key, value: Some(value), ..one })))
            }
            (Some(_), None) => Ok(root.get(&one.key).is_some().then_some(one)),
            (Some(_), Some(_)) if one.operation != Operation::Delete => Ok(Some(force(one))),
            (Some(_), Some(_)) => Ok(root.get(&one.key).is_some().then_some(one)),
            (None, Some(Node { value: Value::Map(_), .. })) if one.operation == Operation::Change => {
                Ok(Some(self.mapping(one, root)?))
            }
            (None, _) => {
                if one.operation == Operation::Delete {
                    self.deleted.borrow_mut().push((one.key.clone(), one.origin.clone()));
                }
                Ok(Some(one))
            }
        }
    }
}

impl Verl<'_> {
    /// `key={a: 1, b: 2}`: where all keys that are not there are known to the table, they may be set.
    fn mapping(&self, one: Override, root: &Node) -> Result<Override, Problem> {
        let Some(value) = &one.value else { return Ok(one) };
        let mut nested = Node::new(Value::Map(vec![]), one.origin.clone());
        nested.put(&one.key, value.clone());
        self.rename(&mut nested)?;
        let mut all_known = true;
        leaves("", &nested, &mut |key, _| all_known &= root.get(key).is_some() || self.row(key).is_some());
        let value = nested.get(&one.key).cloned();
        let operation = if all_known { Operation::Force } else { one.operation };
        Ok(Override { operation, value: value.or(one.value.clone()), ..one })
    }
}

/// Calls `visit` for everything below a node that is no mapping, or an empty one.
pub fn leaves<'a>(key: &str, node: &'a Node, visit: &mut impl FnMut(&str, &'a Node)) {
    match &node.value {
        Value::Map(entries) if !entries.is_empty() => {
            for (name, child) in entries {
                let below = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                leaves(&below, child, visit);
            }
        }
        _ => visit(key, node),
    }
}

/// Takes a key away, and the mappings that it leaves empty.
fn remove(root: &mut Node, key: &str) {
    root.remove(key);
    if let Some((parent, _)) = key.rsplit_once('.')
        && super::is_empty_mapping(root.get(parent))
    {
        remove(root, parent);
    }
}
