//! Writes rows of any columns as JSON lines or parquet, depending on the file name.

use std::path::Path;

use anyhow::{Result, bail, ensure};
use indexmap::IndexSet;
use serde_json::{Map, Value};

use crate::files::table::RowTable;
use burnish_util::fs::write_atomic;

/// Writes the rows atomically.
///
/// # Errors
/// If the name does not end in .jsonl or .parquet, or the file cannot be written or cannot represent the rows.
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
            for (name, values) in &columns {
                check_arguments(name, values)?;
            }
            let columns: Vec<(&str, &[Value])> = columns.iter().map(|(name, values)| (*name, values.as_slice())).collect();
            RowTable::without_columns(rows.len())?.write_columns(path, &[], &columns)
        }
        _ => bail!("{}: the file name must end in .jsonl or .parquet", path.display()),
    }
}

/// Checks that the tool calls in a column of messages fit in a table, which gives all calls the same arguments and adds null for
/// missing ones.
fn check_arguments(name: &str, values: &[Value]) -> Result<()> {
    let mut all = Vec::new();
    values.iter().for_each(|value| arguments_in(value, &mut all));
    let names = |arguments: &Map<String, Value>| arguments.keys().cloned().collect::<Vec<_>>();
    let is_flat = |arguments: &&Map<String, Value>| !arguments.values().any(|value| value.is_object() || value.is_array());
    ensure!(
        all.iter().all(|arguments| is_flat(arguments) && names(arguments) == names(all[0])),
        "column \"{name}\": the tool calls have different arguments, and a parquet table would add null arguments; write a \
         .jsonl file"
    );
    Ok(())
}

/// Collects the arguments of all calls in a value.
fn arguments_in<'a>(value: &'a Value, all: &mut Vec<&'a Map<String, Value>>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| arguments_in(item, all)),
        Value::Object(fields) => fields.iter().for_each(|(name, value)| match value {
            Value::Object(arguments) if name == "arguments" => all.push(arguments),
            value => arguments_in(value, all),
        }),
        _ => {}
    }
}
