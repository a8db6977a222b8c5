//! The collected problems of a validation.

use super::choices::Choices;
use burnish_hydra::{Node, Problem};

/// Collects the problems of a validation, with the origins of the keys.
pub struct Report<'a> {
    pub(super) tree: &'a Node,
    /// The built-in configuration, resolved.
    pub(super) defaults: &'a Node,
    /// The names in the registries.
    pub(super) choices: &'a Choices,
    pub(super) problems: Vec<Problem>,
    /// Keys with a refused value. Further problems with such a key are not reported.
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
