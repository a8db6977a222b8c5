//! Reads JSON lines, or one JSON array of objects.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;

use super::column_selection::{ColumnSelection, Columns};
use burnish_util::exact_json::{Exact, may_exceed_64_bits};

/// Reads the rows, and the names of all columns.
///
/// # Errors
/// If the file cannot be read or is not rows of JSON, or a selected column has an integer beyond 64 bits.
pub(crate) fn read(mut file: File, selection: &ColumnSelection) -> Result<(Vec<Columns>, Vec<String>)> {
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let rows: Vec<Columns> = if text.trim_start().starts_with('[') {
        serde_json::from_str(&text).context("not an array of objects")?
    } else {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let parse = |(i, line)| serde_json::from_str(line).with_context(|| format!("line {} is not a JSON object", i + 1));
        match lines.map(parse).collect::<Result<Vec<Columns>>>() {
            Ok(rows) if !rows.iter().any(is_table) => rows,
            Err(error) if serde_json::from_str::<Columns>(&text).is_err() => return Err(error),
            _ => bail!(
                "the file is one JSON object, not rows: write an array of objects, or one object per line (pandas: \
                 df.to_json(FILE, orient=\"records\", lines=True))"
            ),
        }
    };
    if may_exceed_64_bits(&text) {
        check_integers(&text, |column| selection.has(column))?;
    }
    let known: BTreeSet<&String> = rows.iter().flat_map(Columns::keys).collect();
    let known = known.into_iter().cloned().collect();
    Ok((rows, known))
}

/// Returns true if the object is a whole table by columns, with row numbers as keys: the default of pandas' `to_json`.
fn is_table(object: &Columns) -> bool {
    let is_number = |key: &str| key.bytes().all(|byte| byte.is_ascii_digit());
    let has_rows = |rows: &Columns| rows.contains_key("0") && rows.keys().all(|key| is_number(key));
    let is_column = |column: &Value| column.as_object().is_some_and(has_rows);
    !object.is_empty() && object.values().all(is_column)
}

/// Refuses integers that were rounded because they were read as floats. Columns that are not selected may have them.
fn check_integers(text: &str, is_selected: impl Fn(&str) -> bool) -> Result<()> {
    let read = |text: &str| Exact::parse(text).map_err(|error| anyhow!("{error}"));
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let rows = match read(text) {
        Ok(Exact::List(rows)) => rows,
        // Only the lines that may have such an integer are read again.
        _ => lines.map(|line| if may_exceed_64_bits(line) { read(line) } else { Ok(Exact::Null) }).collect::<Result<_>>()?,
    };
    for (index, row) in rows.iter().enumerate() {
        let Exact::Object(columns) = row else { continue };
        for (name, value) in columns.iter().filter(|(name, _)| is_selected(name)) {
            if let Some(integer) = value.beyond_64_bits() {
                bail!(
                    "row {index}, column \"{name}\": the integer {integer} does not fit in 64 bits; write it as text, in quotes"
                );
            }
        }
    }
    Ok(())
}
