//! The parquet schema of RL data sets, as in verl's preparation scripts.

use std::path::Path;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use crate::files::table::RowTable;

/// One row in verl's schema.
#[derive(Clone, Debug, PartialEq)]
pub struct VerlRow {
    /// Data source, which selects the scorer.
    pub data_source: &'static str,
    /// A list of messages, or plain text.
    pub prompt: Value,
    pub ability: &'static str,
    /// verl's `reward_model.style`: "rule" or "model".
    pub style: &'static str,
    pub ground_truth: String,
    /// An object, by convention with `split` and `index`.
    pub extra_info: Value,
}

impl VerlRow {
    /// Returns a conversation of one user message.
    pub fn user(content: &str) -> Value {
        json!([{"role": "user", "content": content}])
    }
}

/// Writes `rows` atomically, with the columns data_source, prompt, ability, reward_model and extra_info.
///
/// # Errors
/// If there are no rows, or the file cannot be written.
pub fn write_rows(path: &Path, rows: Vec<VerlRow>) -> Result<()> {
    write_with(path, rows, &[])
}

/// Like [`write_rows`], with further columns.
///
/// # Errors
/// The errors of [`write_rows`].
pub(super) fn write_with(path: &Path, rows: Vec<VerlRow>, more: &[(&str, &[Value])]) -> Result<()> {
    write_all(&RowTable::without_columns(rows.len())?, &[], path, rows, more)
}

/// Writes `rows` together with the columns of a table, except `left_out`, as `datasets.map` does in verl's scripts. The table has
/// as many rows.
///
/// # Errors
/// The errors of [`write_rows`].
pub(super) fn write_with_table(table: &RowTable, left_out: &[&str], path: &Path, rows: Vec<VerlRow>) -> Result<()> {
    write_all(table, left_out, path, rows, &[])
}

fn write_all(table: &RowTable, left_out: &[&str], path: &Path, rows: Vec<VerlRow>, more: &[(&str, &[Value])]) -> Result<()> {
    if rows.is_empty() {
        bail!("{}: no rows to write", path.display());
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
