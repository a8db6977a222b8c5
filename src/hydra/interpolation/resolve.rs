//! The questions that are asked of a tree with `${…}`.

use super::resolver::{Found, LookUp, Missing, Resolver, is_missing};
use crate::hydra::error::Problem;
use crate::hydra::provenance::Origin;
use crate::hydra::tree::{Node, Value, segments};

/// Replaces every interpolation by its value and reports those that have none, and values still to be given (`???`).
pub fn resolve(root: &Node) -> (Node, Vec<Problem>) {
    resolve_in(root, root)
}

/// As [`resolve`], for a part of a tree whose other keys may be referred to but are not resolved themselves.
pub fn resolve_in(part: &Node, root: &Node) -> (Node, Vec<Problem>) {
    resolve_with(part, root, Missing::IsWrong)
}

/// As [`resolve`], but a value still to be given stays `???`.
pub fn resolve_given(root: &Node) -> (Node, Vec<Problem>) {
    resolve_with(root, root, Missing::Stays)
}

fn resolve_with(part: &Node, root: &Node, missing: Missing) -> (Node, Vec<Problem>) {
    let mut resolver = Resolver::new(root, missing);
    let mut problems = vec![];
    let resolved = resolver.tree("", part, &mut problems);
    (resolved, problems)
}

/// The present value of a key, with interpolations followed; `None` if there is none, or it is null or still to be given.
pub fn select(root: &Node, key: &str) -> Result<Option<Node>, Problem> {
    let mut resolver = Resolver::new(root, Missing::Stays);
    let names: Vec<String> = segments(key).map(str::to_string).collect();
    let found = match resolver.look_up(&names)? {
        LookUp::At(found) => found,
        _ => return Ok(None),
    };
    let node = found.node().clone();
    let is_given = node.value != Value::Null && !is_missing(&node);
    Ok(is_given.then_some(node))
}

/// The key at which the node of a key is once interpolations are followed, on the way and at the end; `None` if it is nowhere.
pub fn place(root: &Node, key: &str) -> Option<String> {
    let mut resolver = Resolver::new(root, Missing::Stays);
    let names: Vec<String> = segments(key).map(str::to_string).collect();
    match resolver.look_up(&names) {
        Ok(LookUp::At(Found::At(key, _))) => Some(key),
        _ => None,
    }
}

/// The value of a text that stands nowhere in the tree.
pub fn text(root: &Node, text: &str, origin: &Origin) -> Result<Node, Problem> {
    let mut resolver = Resolver::new(root, Missing::Stays);
    resolver.leaf("", text, origin)
}
