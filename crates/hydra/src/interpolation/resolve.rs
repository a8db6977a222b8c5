//! The functions that resolve a tree with `${…}`, or a part of it.

use super::resolver::{LookUp, Missing, ResolvedNode, Resolver, is_missing};
use crate::error::Problem;
use crate::provenance::Origin;
use crate::tree::{Node, Value, segments};

/// Replaces every interpolation by its value. Reports interpolations without a value, and missing values (`???`).
pub fn resolve(root: &Node) -> (Node, Vec<Problem>) {
    resolve_in(root, root)
}

/// Like [`resolve`], for a part of a tree. Interpolations may refer to other keys, which are not resolved themselves.
pub fn resolve_in(part: &Node, root: &Node) -> (Node, Vec<Problem>) {
    resolve_with(part, root, Missing::IsWrong)
}

/// Like [`resolve`], but a missing value stays `???`.
pub fn resolve_present(root: &Node) -> (Node, Vec<Problem>) {
    resolve_with(root, root, Missing::Stays)
}

/// Like [`resolve_in`], but values from the environment, and references to them, stay `${oc.env:…}`. A value that cannot be
/// resolved stays unchanged.
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

/// Returns the current value of a key, with interpolations resolved; `None` if the key does not exist, or is null or `???`.
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

/// Follows all interpolations in the path of a key and returns the key of the final node; `None` if that node does not exist.
pub(crate) fn final_key(root: &Node, key: &str) -> Option<String> {
    let mut resolver = Resolver::new(root, Missing::Stays);
    let names: Vec<String> = segments(key).map(str::to_string).collect();
    match resolver.look_up(&names) {
        Ok(LookUp::At(ResolvedNode::At(key, _))) => Some(key),
        _ => None,
    }
}

/// Resolves a text that is not part of the tree.
pub fn text(root: &Node, text: &str, origin: &Origin) -> Result<Node, Problem> {
    let mut resolver = Resolver::new(root, Missing::Stays);
    resolver.leaf("", text, origin)
}
