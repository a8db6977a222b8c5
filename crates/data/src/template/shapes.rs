//! The verdicts on conversations of one shape (roles, kinds of contents, names of fields): whether a chat template writes all of
//! them. A shape is tried once, however many rows have it.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// The verdict on conversations of a shape: the template writes their texts, or not.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// It does, once messages of these roles have other roles: (role, the role that is written).
    Written(Vec<(String, &'static str)>),
    /// It does not: the error.
    Lost(String),
}

/// The verdicts on the shapes that were met, and what was said of them.
#[derive(Default)]
pub(crate) struct ShapeVerdicts {
    verdicts: Mutex<HashMap<u64, Arc<Verdict>>>,
    said: Mutex<BTreeSet<String>>,
}

impl ShapeVerdicts {
    /// Returns the verdict on a shape, which `judge` finds where it is not known. Two threads may both judge a new shape.
    pub fn verdict(&self, shape: u64, judge: impl FnOnce() -> Verdict) -> Arc<Verdict> {
        let known = || self.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(verdict) = known().get(&shape) {
            return verdict.clone();
        }
        let verdict = Arc::new(judge());
        known().entry(shape).or_insert(verdict).clone()
    }

    /// Warns of something, once.
    pub fn say(&self, text: String) {
        if self.said.lock().unwrap_or_else(PoisonError::into_inner).insert(text.clone()) {
            tracing::warn!("{text}");
        }
    }
}
