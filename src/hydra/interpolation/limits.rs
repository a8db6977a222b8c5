//! Limits on what a few short interpolations can grow to.

use super::resolver::Resolver;
use crate::hydra::error::Problem;
use crate::hydra::grammar::{DEEPEST, LONGEST};
use crate::hydra::provenance::Origin;
use crate::hydra::tree::{Node, Value};

/// How many values one configuration may resolve to, with those worked out on the way.
const MOST_VALUES: usize = 1_000_000;

/// A text counts as one more value for each of these bytes.
const TEXT_UNIT: usize = 64;

impl Resolver<'_> {
    /// Works out something that can hold its like.
    pub(super) fn deeper<T>(
        &mut self,
        key: &str,
        origin: &Origin,
        work: impl FnOnce(&mut Self) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        if self.is_spent() {
            let message = format!("`{key}` needs too much: the configuration would come to more than 1,000,000 values");
            return Err(Problem::new(key, message).at(origin).help("its `${…}` repeat each other: refer to fewer values"));
        }
        if self.depth == DEEPEST {
            let message = format!("`{key}` is nested too deeply: at most {DEEPEST} levels are followed");
            return Err(Problem::new(key, message).at(origin));
        }
        self.spent += 1;
        self.depth += 1;
        let done = work(self);
        self.depth -= 1;
        done
    }

    pub(super) fn is_spent(&self) -> bool {
        self.spent > MOST_VALUES
    }

    /// Counts a text by its length.
    pub(super) fn spend(&mut self, node: &Node) {
        if let Value::Text(text) = &node.value {
            self.spent += text.len() / TEXT_UNIT;
        }
    }

    /// Adds to a text that interpolations make.
    pub(super) fn append(&self, key: &str, origin: &Origin, whole: &mut String, part: &str) -> Result<(), Problem> {
        if whole.len() + part.len() > LONGEST {
            let message = format!("`{key}` comes to a text of more than 1 MB");
            return Err(Problem::new(key, message).at(origin).help("its `${…}` repeat each other: refer to fewer values"));
        }
        whole.push_str(part);
        Ok(())
    }
}
