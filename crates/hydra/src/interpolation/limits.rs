//! Limits on the size of the values that interpolations produce.

use super::resolver::Resolver;
use crate::error::Problem;
use crate::grammar::{DEEPEST, LONGEST};
use crate::provenance::Origin;
use crate::tree::{Node, Value};

/// The help where values with `${…}` refer to values with `${…}`, and so on.
const REFER_TO_FEWER: &str = "its `${…}` refer to values with further `${…}`: refer to fewer of them";
/// The maximum number of values that the resolution of one configuration may produce, intermediate ones included.
const MAX_VALUES: usize = 1_000_000;

/// Number of bytes of a text that count as one additional value.
const TEXT_UNIT: usize = 64;

impl Resolver<'_> {
    /// Runs a nested step of the resolution, and fails beyond the maximum depth or number of values.
    pub(super) fn deeper<T>(
        &mut self,
        key: &str,
        origin: &Origin,
        work: impl FnOnce(&mut Self) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        if self.is_spent() {
            let message = format!("`{key}` is too large: the configuration would have more than 1,000,000 values");
            return Err(Problem::new(key, message).at(origin).help(REFER_TO_FEWER));
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
        self.spent > MAX_VALUES
    }

    /// Counts a text towards the limit, by its length.
    pub(super) fn spend(&mut self, node: &Node) {
        if let Value::Text(text) = &node.value {
            self.spent += text.len() / TEXT_UNIT;
        }
    }

    /// Appends a part to a text that interpolations produce, up to the maximum length.
    pub(super) fn append(&self, key: &str, origin: &Origin, whole: &mut String, part: &str) -> Result<(), Problem> {
        if whole.len() + part.len() > LONGEST {
            let message = format!("`{key}` would be a text of more than 1 MB");
            return Err(Problem::new(key, message).at(origin).help(REFER_TO_FEWER));
        }
        whole.push_str(part);
        Ok(())
    }
}
