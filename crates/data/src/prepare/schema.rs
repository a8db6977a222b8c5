//! The parquet schema of RL data sets: the one of verl's own preparation scripts.

use std::path::Path;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use crate::files::table::Table;

/// One row in verl's schema.
#[derive(Clone, Debug, PartialEq)]
pub struct VerlRow {
    /// The data source, which chooses the scorer.
    pub data_source: &'static str,
    /// The messages, or plain text.
    pub prompt: Value,
    pub ability: &'static str,
    /// verl's `reward_model.style`: "rule" or "model".
    pub style: &'static str,
    pub ground_truth: String,
    /// An object; `split` and `index` by convention.
    pub extra_info: Value,
}

impl VerlRow {
    /// Returns the conversation of one user message.
    pub fn user(content: &str) -> Value {
        json!([{"role": "user", "content": content}])
    }
}

/// Writes `rows` with the columns data_source, prompt, ability, reward_model and extra_info. The file appears whole or not at
/// all.
///
/// # Errors
/// If there are no rows, or the file cannot be written.
pub fn write_rows(path: &Path, rows: Vec<VerlRow>) -> Result<()> {
    write_with(path, rows, &[])
}

/// Writes `rows` as [`write_rows`] does, with further columns of as many values.
///
/// # Errors
/// Those of [`write_rows`].
pub(super) fn write_with(path: &Path, rows: Vec<VerlRow>, more: &[(&str, &[Value])]) -> Result<()> {
    write_all(&Table::without_columns(rows.len())?, &[], path, rows, more)
}

/// Writes `rows` beside the columns of a table with as many rows, but for those `left_out`: what `datasets.map` does in verl's
/// scripts.
///
/// # Errors
/// Those of [`write_rows`].
pub(super) fn write_beside(table: &Table, left_out: &[&str], path: &Path, rows: Vec<VerlRow>) -> Result<()> {
    write_all(table, left_out, path, rows, &[])
}

fn write_all(table: &Table, left_out: &[&str], path: &Path, rows: Vec<VerlRow>, more: &[(&str, &[Value])]) -> Result<()> {
    if rows.is_empty() {
        bail!("{}: there are no rows to write", path.display());
    }
    let (mut sources, mut prompts, mut abilities, mut models, mut extras) = (vec![], vec![], vec![], vec![], vec![]);
    for row in rows {
        sources.push(Value::from(row.data_source));
        prompts.push(row.prompt);
        abilities.push(Value::from(row.ability));
        models.push(json!({"style": row.style, "ground_truth": row.ground_truth}));
        extras.push(row.extra_info);
    }
    let mut columns: Vec<(&str, &[Value])> = vec![
        ("data_source", &sources),
        ("prompt", &prompts),
        ("ability", &abilities),
        ("reward_model", &models),
        ("extra_info", &extras),
    ];
    columns.extend(more);
    table.write_columns(path, left_out, &columns)
}
