//! The hook for programs that read files and overrides with the keys of another program.

use super::error::Problem;
use super::overrides::Override;
use super::tree::Node;

/// Changes files and overrides of another program to the keys of this program.
pub trait Adapt {
    /// Changes the keys of one file, nested at their package, before they are merged into the tree.
    fn file(&self, body: Node) -> Result<Node, Problem>;

    /// Returns the overrides that replace this override.
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
