//! A way to make rows of scored responses: its entry, its options and its result.

use anyhow::Result;
use serde_json::{Map, Value};

use super::scored::ScoredResponses;

/// A way to make rows, with its name.
pub struct RowKind {
    pub name: &'static str,
    pub doc: &'static str,
    /// The options that it reads.
    pub reads: &'static [&'static str],
    pub make: fn(&ScoredResponses, &SelectOptions) -> Result<SelectedRows>,
}

/// The options of all ways; each reads those it names.
#[derive(Clone, Debug, Default)]
pub struct SelectOptions {
    /// The least difference of the scores of a pair.
    pub min_margin: f64,
    /// The least score that counts as good.
    pub threshold: Option<f64>,
    /// The text that a prompt becomes, with `{input}` and `{reward}`.
    pub reward_template: String,
    /// Scores less their mean, divided by their standard deviation.
    pub normalize_reward: bool,
}

/// Rows, and what was left out and why.
#[derive(Clone, Debug, Default)]
pub struct SelectedRows {
    pub rows: Vec<Map<String, Value>>,
    /// Numbers of prompts or responses that were left out, with the reason.
    pub left_out: Vec<(usize, String)>,
}
