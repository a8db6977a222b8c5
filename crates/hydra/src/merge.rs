//! Merges one part of a configuration into another by the rules of OmegaConf.

use super::error::Problem;
use super::interpolation;
use super::suggest::{Addition, unknown_key};
use super::tree::{Node, Value, below};

/// The treatment of new keys in a merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys {
    MayBeNew,
    MustExist,
}

/// Merges `over` into the mapping or list at `key` of the tree. Mappings are merged key by key; lists and scalars are replaced;
/// `???` keeps the current value; a mapping and a list cannot replace each other.
pub(crate) fn merge(root: &mut Node, key: &str, over: Node, keys: Keys) -> Result<(), Problem> {
    if root.get(key).is_some_and(|under| follows_under(under, &over)) {
        follow(root, key, &over);
    }
    let known = if keys == Keys::MustExist { root.keys() } else { vec![] };
    match root.get_mut(key) {
        Some(under) => merge_node(under, over, key, keys, &known),
        None => Ok(()),
    }
}

fn merge_node(under: &mut Node, over: Node, key: &str, keys: Keys, known: &[String]) -> Result<(), Problem> {
    match (&mut under.value, over.value) {
        (Value::Map(map), Value::Map(entries)) => {
            let addition = if map.is_empty() { Addition::Likely } else { Addition::Maybe };
            for (name, node) in entries {
                let key = below(key, &name);
                match map.get_mut(&name) {
                    Some(under) => merge_node(under, node, &key, keys, known)?,
                    None if keys == Keys::MayBeNew => _ = map.insert(name, node),
                    None => return Err(unknown_key(&key, known, addition).at(&node.origin)),
                }
            }
        }
        (_, Value::Text(text)) if text == "???" => {}
        (Value::Map(_), Value::List(_)) | (Value::List(_), Value::Map(_)) => {
            let (was, is) = if matches!(under.value, Value::Map(_)) { ("mapping", "list") } else { ("list", "mapping") };
            let message = format!("`{key}` is a {was}, so it cannot become a {is}; the {was} is at {}", under.origin);
            return Err(Problem::new(key, message).at(&over.origin).help(format!("to replace it, delete it first: ~{key}")));
        }
        (_, value) => *under = Node { value, origin: over.origin, through: over.through },
    }
    Ok(())
}

/// True if `over` is a mapping or list and `under` is an interpolation.
fn follows_under(under: &Node, over: &Node) -> bool {
    match (&under.value, &over.value) {
        (Value::Text(text), Value::Map(_) | Value::List(_)) => text.contains("${"),
        (Value::Map(map), Value::Map(entries)) => {
            entries.iter().any(|(name, node)| map.get(name).is_some_and(|under| follows_under(under, node)))
        }
        _ => false,
    }
}

/// Replaces an interpolation by a copy of the value that it refers to, so that the merge adds to that value.
fn follow(root: &mut Node, key: &str, over: &Node) {
    if let (Some(Value::Text(_)), Value::Map(_) | Value::List(_)) = (root.get(key).map(|node| &node.value), &over.value)
        && let Ok(Some(target)) = interpolation::select(root, key)
        && matches!(target.value, Value::Map(_) | Value::List(_))
        && let Some(node) = root.get_mut(key)
    {
        *node = target;
    }
    if let Value::Map(entries) = &over.value {
        entries.iter().for_each(|(name, node)| follow(root, &below(key, name), node));
    }
}
