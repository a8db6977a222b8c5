//! The entry of an algorithm, and the tables of all entries.

use serde_json::Value;

use super::case::PeerCase;
use super::{a2po, batches, corrections, distillation, echo, estimators, policy_losses, preferences, terms, uld};

/// The precision of our side; values may differ by this share of max(1, |value|).
#[derive(Clone, Copy)]
pub(crate) enum Precision {
    /// Numbers on the host: the peer's precision decides.
    Double,
    /// Inputs or results are float32 columns, or the formula runs on float32 tensors.
    Column,
}

impl Precision {
    /// Returns the tolerance for a case whose peer computed in `dtype`.
    pub(super) fn tolerance(self, dtype: &str) -> f64 {
        match self {
            Self::Double if !dtype.contains("float32") => 1e-8,
            _ => 1e-6,
        }
    }
}

/// The function that computes an algorithm of `algorithms-2026.json` here.
pub(crate) struct Entry {
    /// The field `algorithm` of its cases.
    pub algorithm: &'static str,
    pub precision: Precision,
    /// Our result in the form of the field `out`, with fewer keys. `null` stands for a value that is not compared.
    pub run: fn(&PeerCase) -> Value,
    /// Keys of `out` that are not compared, with the reason.
    pub left_out: &'static [(&'static str, &'static str)],
    /// The reason why our result of a case differs on purpose.
    pub deviates: fn(&PeerCase) -> Option<&'static str>,
}

/// Every table of entries.
pub(super) const TABLES: &[&[Entry]] = &[
    estimators::ENTRIES,
    batches::ENTRIES,
    corrections::ENTRIES,
    terms::ENTRIES,
    policy_losses::ENTRIES,
    distillation::ENTRIES,
    echo::ENTRIES,
    a2po::ENTRIES,
    uld::ENTRIES,
    preferences::ENTRIES,
];

/// Returns the entry of an algorithm.
pub(super) fn find(algorithm: &str) -> Option<&'static Entry> {
    TABLES.iter().flat_map(|table| *table).find(|entry| entry.algorithm == algorithm)
}

/// Returns true if `algorithms-2026.json` has values of an algorithm, or of its values of prompts.
pub(crate) fn covers(name: &str) -> bool {
    find(name).or_else(|| find(&format!("{name}_value"))).is_some()
}

/// The value of [`Entry::deviates`] for an algorithm without a deviation.
pub(super) fn never(_: &PeerCase) -> Option<&'static str> {
    None
}
