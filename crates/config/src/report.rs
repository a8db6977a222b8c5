//! The problems that validation finds.

use super::choices::Choices;
use burnish_hydra::{Node, Problem};

/// Collects the problems that validation finds, with the origins of the keys.
pub struct Report<'a> {
    pub(super) tree: &'a Node,
    /// The built-in configuration, resolved.
    pub(super) defaults: &'a Node,
    /// The names that registries know.
    pub(super) choices: &'a Choices,
    pub(super) problems: Vec<Problem>,
    /// Keys whose value is not among the documented ones. Problems that follow from such a value are not reported too.
    pub(super) refused: Vec<String>,
}

impl Report<'_> {
    /// Adds a problem with the value of `key`; `help` may be empty.
    pub fn wrong(&mut self, key: &str, message: impl Into<String>, help: impl Into<String>) {
        if self.refused.iter().any(|refused| refused == key) {
            return;
        }
        let help = Some(help.into()).filter(|help| !help.is_empty());
        let problem = Problem { help, ..Problem::new(key, message) };
        let origin = self.tree.get(key).map(|node| &node.origin);
        self.problems.push(origin.into_iter().fold(problem, |problem, origin| problem.at(origin)));
    }
}
