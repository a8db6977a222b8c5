//! Settings of a converted command that a run would refuse.

use super::converted::{Blocked, Converted, placeholder};
use super::recipe;
use crate::config::compat::inline;
use crate::hydra::{Problem, overrides};

impl Converted {
    /// True if only a run of the script could tell the value of a key.
    pub fn has_hole(&self, key: &str) -> bool {
        let value = self.settings.get(key).map(|node| inline(&node.value)).unwrap_or_default();
        (0..self.holes.len()).any(|hole| value.contains(&placeholder(hole)))
    }

    /// Comments a setting out that a problem is about, with the problem as its reason; false if the command does not set its key.
    pub fn block(&mut self, problem: &Problem) -> bool {
        let Some(node) = self.settings.get(&problem.key).cloned() else { return false };
        if problem.key.is_empty() || self.has_hole(&problem.key) {
            return false;
        }
        self.settings.remove(&problem.key);
        let is_it = |word: &String| {
            let Ok(one) = overrides::parse(word) else { return false };
            let name =
                self.renamed.iter().find(|renamed| renamed.from == one.key).map_or(one.key.as_str(), |renamed| &renamed.to);
            name == problem.key
        };
        self.overrides = self.overrides.iter().filter(|word| !is_it(word)).cloned().collect();
        self.blocked.push(Blocked { key: problem.key.clone(), value: inline(&node.value), reason: problem.message.clone() });
        self.recipe = recipe::write(self);
        true
    }
}
