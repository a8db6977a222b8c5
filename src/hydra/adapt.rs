//! A place for changes on the way in: a program whose keys differ from those that files and overrides were written for.

use super::error::Problem;
use super::overrides::Override;
use super::tree::Node;

/// What is changed on the way in, so that files and overrides written for other programs fit the keys of this one.
pub trait Adapt {
    /// The keys of one file, laid at their package, before they are merged into the tree.
    fn file(&self, body: Node) -> Result<Node, Problem>;

    /// One override, before it is applied to the tree: those that are applied in its place.
    fn overriding(&self, one: Override, root: &Node) -> Result<Vec<Override>, Problem>;
}

/// Changes nothing: Hydra as it is.
pub struct Plain;

impl Adapt for Plain {
    fn file(&self, body: Node) -> Result<Node, Problem> {
        Ok(body)
    }

    fn overriding(&self, one: Override, _root: &Node) -> Result<Vec<Override>, Problem> {
        Ok(vec![one])
    }
}
