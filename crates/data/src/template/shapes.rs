//! Remembers, per shape of a conversation (roles, content types, field names), if a chat template writes all of its texts. Each
//! shape is tried once.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// The verdict on a shape: the template writes all texts, or loses some.
#[derive(Debug)]
pub(crate) enum ShapeVerdict {
    /// The template writes all texts, after these roles are replaced: (role, replacement).
    Written(Vec<(String, &'static str)>),
    /// The template loses a text: the error message.
    Lost(String),
}

/// The verdicts so far, and the warnings already given.
#[derive(Default)]
pub(crate) struct ShapeVerdicts {
    verdicts: Mutex<HashMap<u64, Arc<ShapeVerdict>>>,
    reported: Mutex<BTreeSet<String>>,
}

impl ShapeVerdicts {
    /// Returns the verdict on a shape; calls `judge` for a new one. Two threads may judge the same new shape.
    pub(crate) fn verdict(&self, shape: u64, judge: impl FnOnce() -> ShapeVerdict) -> Arc<ShapeVerdict> {
        let known = || self.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(verdict) = known().get(&shape) {
            return verdict.clone();
        }
        let verdict = Arc::new(judge());
        known().entry(shape).or_insert(verdict).clone()
    }

    /// Logs a warning once.
    pub(crate) fn warn_once(&self, text: String) {
        if self.reported.lock().unwrap_or_else(PoisonError::into_inner).insert(text.clone()) {
            tracing::warn!("{text}");
        }
    }
}
