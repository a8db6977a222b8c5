//! The functions that resolve a tree with `${…}`, or a part of it.

use super::resolver::{Found, LookUp, Missing, Resolver, is_missing};
use crate::error::Problem;
use crate::provenance::Origin;
use crate::tree::{Node, Value, segments};

/// Replaces every interpolation by its value and reports those without a value, and missing values (`???`).
pub fn resolve(root: &Node) -> (Node, Vec<Problem>) {
    resolve_in(root, root)
}

/// Like [`resolve`], for a part of a tree; the other keys may be referred to but are not resolved themselves.
pub fn resolve_in(part: &Node, root: &Node) -> (Node, Vec<Problem>) {
    resolve_with(part, root, Missing::IsWrong)
}

/// Like [`resolve`], but a missing value stays `???`.
pub fn resolve_given(root: &Node) -> (Node, Vec<Problem>) {
    resolve_with(root, root, Missing::Stays)
}

/// Like [`resolve_in`], but what comes from the environment stays `${oc.env:…}`, and so does what refers to it. What cannot be
/// resolved stays as it is written.
pub fn resolve_but_environment(part: &Node, root: &Node) -> Node {
    let mut resolver = Resolver::new(root, Missing::Stays);
    resolver.keeps_environment = true;
    resolver.tree("", part, &mut vec![])
}

fn resolve_with(part: &Node, root: &Node, missing: Missing) -> (Node, Vec<Problem>) {
    let mut resolver = Resolver::new(root, missing);
    let mut problems = vec![];
    let resolved = resolver.tree("", part, &mut problems);
    (resolved, problems)
}

/// Returns the present value of a key, with interpolations resolved; `None` if the key does not exist, is null or is missing
/// (`???`).
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

/// Returns the key of the node that a key leads to once all interpolations in its path are followed; `None` if there is no such
/// node.
pub fn place(root: &Node, key: &str) -> Option<String> {
    let mut resolver = Resolver::new(root, Missing::Stays);
    let names: Vec<String> = segments(key).map(str::to_string).collect();
    match resolver.look_up(&names) {
        Ok(LookUp::At(Found::At(key, _))) => Some(key),
        _ => None,
    }
}

/// Resolves a text that is not part of the tree.
pub fn text(root: &Node, text: &str, origin: &Origin) -> Result<Node, Problem> {
    let mut resolver = Resolver::new(root, Missing::Stays);
    resolver.leaf("", text, origin)
}
