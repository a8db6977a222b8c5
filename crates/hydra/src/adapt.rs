//! The hook for programs whose keys differ from those that files and overrides were written for.

use super::error::Problem;
use super::overrides::Override;
use super::tree::Node;

/// Changes to files and overrides written for another program, so that they fit the keys of this one.
pub trait Adapt {
    /// Changes the keys of one file, which are at their package, before they are merged into the tree.
    fn file(&self, body: Node) -> Result<Node, Problem>;

    /// Returns the overrides that are applied to the tree in place of this one.
    fn overriding(&self, one: Override, root: &Node) -> Result<Vec<Override>, Problem>;
}

/// The [`Adapt`] that changes nothing: plain Hydra.
pub struct Plain;

impl Adapt for Plain {
    fn file(&self, body: Node) -> Result<Node, Problem> {
        Ok(body)
    }

    fn overriding(&self, one: Override, _root: &Node) -> Result<Vec<Override>, Problem> {
        Ok(vec![one])
    }
}
