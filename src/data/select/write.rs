//! Writes rows of any columns as JSON lines or parquet, by the name of the file.

use std::path::Path;

use anyhow::{Result, bail};
use indexmap::IndexSet;
use serde_json::{Map, Value};

use crate::data::table::Table;
use crate::util::fs::write_atomic;

/// Writes the rows as a whole or not at all.
///
/// # Errors
/// If the name ends neither in .jsonl nor in .parquet, or the file cannot be written.
pub fn write_objects(path: &Path, rows: &[Map<String, Value>]) -> Result<()> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("jsonl") => {
            let lines: String =
                rows.iter().map(|row| serde_json::to_string(row).map(|line| line + "\n")).collect::<Result<_, _>>()?;
            write_atomic(path, lines.as_bytes())
        }
        Some("parquet") => {
            let names: IndexSet<&str> = rows.iter().flat_map(|row| row.keys().map(String::as_str)).collect();
            let values =
                |name: &str| -> Vec<Value> { rows.iter().map(|row| row.get(name).cloned().unwrap_or_default()).collect() };
            let columns: Vec<(&str, Vec<Value>)> = names.into_iter().map(|name| (name, values(name))).collect();
            let columns: Vec<(&str, &[Value])> = columns.iter().map(|(name, values)| (*name, values.as_slice())).collect();
            Table::without_columns(rows.len())?.write_columns(path, &[], &columns)
        }
        _ => bail!("{}: a file of rows ends in .jsonl or .parquet", path.display()),
    }
}
