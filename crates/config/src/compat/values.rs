//! Comparison of values, and mappings that take any key.

use burnish_hydra::{Node, Value};

/// True if two values are equal; an integer and a float may be equal.
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

/// True if the key is inside a mapping that takes any key.
pub fn below_open_mapping(key: &str, defaults: &Node) -> bool {
    let ancestors = std::iter::successors(key.rsplit_once('.'), |(parent, _)| parent.rsplit_once('.'));
    ancestors.map(|(parent, _)| parent).any(|parent| is_empty_mapping(defaults.get(parent)))
}

pub(super) fn is_empty_mapping(node: Option<&Node>) -> bool {
    matches!(node, Some(Node { value: Value::Map(entries), .. }) if entries.is_empty())
}
