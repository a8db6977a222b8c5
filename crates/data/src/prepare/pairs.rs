//! Pairs for a reward model, in the layout of verl's `full_hh_rlhf.py`: text columns prompt, chosen and rejected.

use std::path::Path;

use anyhow::Result;
use serde_json::Value;

use crate::files::table::RowTable;

/// A prompt with a better and a worse response.
#[derive(Clone, Debug)]
pub(super) struct PairRow {
    pub prompt: String,
    pub chosen: String,
    pub rejected: String,
}

/// Writes the pairs atomically.
pub(super) fn write_pairs(path: &Path, pairs: &[PairRow]) -> Result<()> {
    let column = |text: fn(&PairRow) -> &String| -> Vec<Value> { pairs.iter().map(|pair| text(pair).as_str().into()).collect() };
    write_texts(
        path,
        &[("prompt", column(|p| &p.prompt)), ("chosen", column(|p| &p.chosen)), ("rejected", column(|p| &p.rejected))],
    )
}

/// Writes text columns of the same length.
pub(super) fn write_texts(path: &Path, columns: &[(&str, Vec<Value>)]) -> Result<()> {
    let rows = columns.first().map_or(0, |(_, values)| values.len());
    let columns: Vec<(&str, &[Value])> = columns.iter().map(|(name, values)| (*name, values.as_slice())).collect();
    RowTable::without_columns(rows)?.write_columns(path, &[], &columns)
}
