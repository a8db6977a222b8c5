//! The configuration as a tree of values that know where they were written, before any types.

use super::provenance::Origin;

/// A mapping; keys keep the order in which they were first written.
pub type Map = Vec<(String, Node)>;

/// A value and where it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub value: Value,
    pub origin: Origin,
    /// The key that this value was taken from, for values that were written as `${key}`.
    pub through: Option<String>,
}

/// What YAML can hold.
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
    /// The YAML of this value, on one line where it is a scalar.
    pub fn to_yaml(&self) -> String {
        serde_yaml::to_string(&self.to_serde()).unwrap_or_default().trim_end().to_string()
    }

    /// What kind of value this is, for messages.
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

    /// A scalar as it appears inside a longer text; `None` for lists and mappings.
    pub fn plain_text(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::List(_) | Self::Map(_) => None,
            scalar => Some(scalar.to_yaml()),
        }
    }

    fn to_serde(&self) -> serde_yaml::Value {
        match self {
            Self::Null => serde_yaml::Value::Null,
            Self::Bool(value) => (*value).into(),
            Self::Int(value) => (*value).into(),
            Self::Float(value) => (*value).into(),
            Self::Text(value) => value.as_str().into(),
            Self::List(items) => items.iter().map(|item| item.value.to_serde()).collect(),
            Self::Map(map) => {
                serde_yaml::Value::Mapping(map.iter().map(|(k, n)| (k.as_str().into(), n.value.to_serde())).collect())
            }
        }
    }

    /// Whether two values are equal, wherever they were written.
    pub fn same(&self, other: &Self) -> bool {
        self.to_serde() == other.to_serde()
    }
}

impl Node {
    pub fn new(value: Value, origin: Origin) -> Self {
        Self { value, origin, through: None }
    }

    /// The child under a key of a mapping or an index of a list.
    pub fn child(&self, name: &str) -> Option<&Node> {
        match &self.value {
            Value::Map(map) => map.iter().find(|(key, _)| key == name).map(|(_, node)| node),
            Value::List(items) => name.parse::<usize>().ok().and_then(|index| items.get(index)),
            _ => None,
        }
    }

    pub fn child_mut(&mut self, name: &str) -> Option<&mut Node> {
        match &mut self.value {
            Value::Map(map) => map.iter_mut().find(|(key, _)| key == name).map(|(_, node)| node),
            Value::List(items) => name.parse::<usize>().ok().and_then(|index| items.get_mut(index)),
            _ => None,
        }
    }

    /// The node at a dotted key; the empty key is the node itself.
    pub fn get(&self, key: &str) -> Option<&Node> {
        segments(key).try_fold(self, |node, segment| node.child(segment))
    }

    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        segments(key).try_fold(self, |node, segment| node.child_mut(segment))
    }

    /// Puts a node under a dotted key and makes the mappings on the way. `None` if something on the way is no mapping.
    pub fn put(&mut self, key: &str, node: Node) -> Option<()> {
        let (parent, last) = key.rsplit_once('.').unwrap_or(("", key));
        let mut at = self;
        for segment in segments(parent) {
            if at.child(segment).is_none() {
                let Value::Map(map) = &mut at.value else { return None };
                map.push((segment.to_string(), Node::new(Value::Map(vec![]), node.origin.clone())));
            }
            at = at.child_mut(segment)?;
        }
        match (at.child(last).is_some(), &mut at.value) {
            (true, _) => *at.child_mut(last)? = node,
            (false, Value::Map(map)) => map.push((last.to_string(), node)),
            (false, _) => return None,
        }
        Some(())
    }

    /// Takes the node at a dotted key away.
    pub fn remove(&mut self, key: &str) -> Option<Node> {
        let (parent, last) = key.rsplit_once('.').unwrap_or(("", key));
        let Value::Map(map) = &mut self.get_mut(parent)?.value else { return None };
        let index = map.iter().position(|(name, _)| name == last)?;
        Some(map.remove(index).1)
    }

    /// Lays `over` upon this node: mappings are merged key by key, anything else is replaced.
    pub fn merge(&mut self, over: Node) {
        match (&mut self.value, over.value) {
            (Value::Map(_), Value::Map(entries)) => {
                for (key, node) in entries {
                    match self.child_mut(&key) {
                        Some(below) => below.merge(node),
                        None => {
                            if let Value::Map(map) = &mut self.value {
                                map.push((key, node));
                            }
                        }
                    }
                }
            }
            (_, value) => *self = Node { value, origin: over.origin, through: over.through },
        }
    }

    /// Calls `visit` with the dotted key of every node below this one, parents first.
    pub fn walk<'a>(&'a self, visit: &mut impl FnMut(&str, &'a Node)) {
        self.walk_from("", visit);
    }

    fn walk_from<'a>(&'a self, prefix: &str, visit: &mut impl FnMut(&str, &'a Node)) {
        let mut go = |name: &str, node: &'a Node| {
            let key = if prefix.is_empty() { name.to_string() } else { format!("{prefix}.{name}") };
            visit(&key, node);
            node.walk_from(&key, visit);
        };
        match &self.value {
            Value::Map(map) => map.iter().for_each(|(name, node)| go(name, node)),
            Value::List(items) => items.iter().enumerate().for_each(|(index, node)| go(&index.to_string(), node)),
            _ => {}
        }
    }

    /// The dotted keys of all mapping entries below this node.
    pub fn keys(&self) -> Vec<String> {
        let mut keys = vec![];
        self.walk(&mut |key, _| {
            let parent = key.rsplit_once('.').map_or("", |(parent, _)| parent);
            if self.get(parent).is_some_and(|node| matches!(node.value, Value::Map(_))) {
                keys.push(key.to_string());
            }
        });
        keys
    }
}

/// The parts of a dotted key.
pub fn segments(key: &str) -> impl Iterator<Item = &str> {
    key.split('.').filter(|segment| !segment.is_empty())
}
