//! The untyped configuration: a tree of values with their origins.

use super::provenance::Origin;
use indexmap::IndexMap;

/// A mapping. Keys keep the order in which they were first written; a lookup takes constant time.
pub(crate) type Map = IndexMap<String, Node>;

/// A value and its origin.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub value: Value,
    pub origin: Origin,
    /// The key that this value was taken from, if it was written as `${key}`.
    pub through: Option<String>,
}

/// A YAML value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Map),
}

impl Value {
    /// Returns the type of the value, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Int(_) => "integer",
            Self::Float(_) => "float",
            Self::Text(_) => "string",
            Self::List(_) => "list",
            Self::Map(_) => "mapping",
        }
    }

    /// True if two values are equal; origins and the order of keys do not count.
    pub fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Float(a), Self::Float(b)) => a == b || a.is_nan() && b.is_nan(),
            (Self::List(a), Self::List(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.value.same(&b.value)),
            (Self::Map(a), Self::Map(b)) => {
                a.len() == b.len() && a.iter().all(|(key, node)| b.get(key).is_some_and(|other| node.value.same(&other.value)))
            }
            _ => self == other,
        }
    }
}

impl Node {
    pub fn new(value: Value, origin: Origin) -> Self {
        Self { value, origin, through: None }
    }

    /// Returns the child under a key of a mapping or an index of a list.
    pub fn child(&self, name: &str) -> Option<&Node> {
        match &self.value {
            Value::Map(map) => map.get(name),
            Value::List(items) => name.parse::<usize>().ok().and_then(|index| items.get(index)),
            _ => None,
        }
    }

    pub(crate) fn child_mut(&mut self, name: &str) -> Option<&mut Node> {
        match &mut self.value {
            Value::Map(map) => map.get_mut(name),
            Value::List(items) => name.parse::<usize>().ok().and_then(|index| items.get_mut(index)),
            _ => None,
        }
    }

    /// Returns the node at a dotted key; the empty key is the node itself.
    pub fn get(&self, key: &str) -> Option<&Node> {
        segments(key).try_fold(self, |node, segment| node.child(segment))
    }

    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        segments(key).try_fold(self, |node, segment| node.child_mut(segment))
    }

    /// Sets the node at a dotted key and creates the mappings in its path. `None` if a value in the path is not a mapping.
    pub fn put(&mut self, key: &str, node: Node) -> Option<()> {
        let (parent, last) = key.rsplit_once('.').unwrap_or(("", key));
        let mut at = self;
        for segment in segments(parent) {
            if at.child(segment).is_none() {
                let Value::Map(map) = &mut at.value else { return None };
                map.insert(segment.to_string(), Node::new(Value::Map(Map::new()), node.origin.clone()));
            }
            at = at.child_mut(segment)?;
        }
        match (at.child(last).is_some(), &mut at.value) {
            (true, _) => *at.child_mut(last)? = node,
            (false, Value::Map(map)) => _ = map.insert(last.to_string(), node),
            (false, _) => return None,
        }
        Some(())
    }

    /// Removes the node at a dotted key and returns it.
    pub fn remove(&mut self, key: &str) -> Option<Node> {
        let (parent, last) = key.rsplit_once('.').unwrap_or(("", key));
        let Value::Map(map) = &mut self.get_mut(parent)?.value else { return None };
        map.shift_remove(last)
    }

    /// Calls `visit` with the dotted key of every node below this node, parents first.
    pub fn walk<'a>(&'a self, visit: &mut impl FnMut(&str, &'a Node)) {
        self.walk_from("", visit);
    }

    fn walk_from<'a>(&'a self, prefix: &str, visit: &mut impl FnMut(&str, &'a Node)) {
        let mut go = |name: &str, node: &'a Node| {
            let key = below(prefix, name);
            visit(&key, node);
            node.walk_from(&key, visit);
        };
        match &self.value {
            Value::Map(map) => map.iter().for_each(|(name, node)| go(name, node)),
            Value::List(items) => items.iter().enumerate().for_each(|(index, node)| go(&index.to_string(), node)),
            _ => {}
        }
    }

    /// Returns the dotted keys of all mapping entries below this node.
    pub fn keys(&self) -> Vec<String> {
        let mut keys = vec![];
        self.keys_from("", &mut keys);
        keys
    }

    fn keys_from(&self, prefix: &str, keys: &mut Vec<String>) {
        match &self.value {
            Value::Map(map) => {
                for (name, node) in map {
                    let key = below(prefix, name);
                    keys.push(key.clone());
                    node.keys_from(&key, keys);
                }
            }
            Value::List(items) => {
                for (index, node) in items.iter().enumerate() {
                    node.keys_from(&below(prefix, &index.to_string()), keys);
                }
            }
            _ => {}
        }
    }
}

/// Returns the parts of a dotted key.
pub fn segments(key: &str) -> impl Iterator<Item = &str> {
    key.split('.').filter(|segment| !segment.is_empty())
}

/// Returns the dotted key of an entry of the mapping at `prefix`.
pub fn below(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_string() } else { format!("{prefix}.{name}") }
}
