//! The entry, options and result of a row kind.

use anyhow::Result;
use serde_json::{Map, Value};

use super::scored::ScoredResponses;

/// A named way to make rows from scored responses.
pub struct RowKind {
    pub name: &'static str,
    pub doc: &'static str,
    /// Options that this kind reads.
    pub reads: &'static [&'static str],
    pub make: fn(&ScoredResponses, &SelectOptions) -> Result<SelectedRows>,
}

/// Options of all kinds; each kind reads the options in [`RowKind::reads`].
#[derive(Clone, Debug, Default)]
pub struct SelectOptions {
    /// Smallest score difference of a pair.
    pub min_margin: f64,
    /// Smallest good score.
    pub threshold: Option<f64>,
    /// Template of a prompt, with `{input}` and `{reward}`.
    pub reward_template: String,
    /// True to subtract the mean of the scores and divide by their standard deviation.
    pub normalize_reward: bool,
}

/// Selected rows, and counts of skipped ones.
#[derive(Clone, Debug, Default)]
pub struct SelectedRows {
    pub rows: Vec<Map<String, Value>>,
    /// Numbers of skipped prompts or responses, with the reason.
    pub left_out: Vec<(usize, String)>,
}
