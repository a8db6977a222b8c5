//! Writes rows of scalars as parquet, CSV or JSON lines, by the ending of the file's name.

use std::path::Path;

use anyhow::{Result, bail};
use indexmap::IndexSet;
use serde_json::{Map, Value};

use super::table::RowTable;
use burnish_util::data_format::{DataFormat, format_of};
use burnish_util::fs::write_atomic;

/// Refuses a file whose ending [`write_rows`] does not write.
///
/// # Errors
/// If the ending is another one.
pub fn check_writes_rows(path: &Path) -> Result<()> {
    match format_of(path) {
        Some((DataFormat::Parquet | DataFormat::Csv | DataFormat::Json, false)) => Ok(()),
        _ => bail!("{}: the name must end in .csv, .parquet or .jsonl", path.display()),
    }
}

/// Writes rows atomically, with a column for each name in any row, in the order of the first mention. A value that is missing is
/// empty, or null.
///
/// # Errors
/// If the ending of the name is not one of these, if the values of a column have several types, or if the file cannot be written.
pub fn write_rows(path: &Path, rows: &[Map<String, Value>]) -> Result<()> {
    check_writes_rows(path)?;
    let names: IndexSet<&String> = rows.iter().flat_map(Map::keys).collect();
    match format_of(path) {
        Some((DataFormat::Parquet, _)) => {
            let column = |name: &&String| -> Vec<Value> {
                rows.iter().map(|row| row.get(name.as_str()).cloned().unwrap_or(Value::Null)).collect()
            };
            let columns: Vec<Vec<Value>> = names.iter().map(column).collect();
            let named: Vec<(&str, &[Value])> =
                names.iter().map(|name| name.as_str()).zip(columns.iter().map(Vec::as_slice)).collect();
            RowTable::without_columns(rows.len())?.write_columns(path, &[], &named)
        }
        Some((DataFormat::Csv, _)) => {
            let mut writer = csv::Writer::from_writer(vec![]);
            writer.write_record(&names)?;
            for row in rows {
                writer.write_record(names.iter().map(|name| field(row.get(name.as_str()))))?;
            }
            write_atomic(path, &writer.into_inner().map_err(|error| error.into_error())?)
        }
        _ => {
            write_atomic(path, rows.iter().map(|row| format!("{}\n", Value::Object(row.clone()))).collect::<String>().as_bytes())
        }
    }
}

fn field(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::files::rows::{EVERY_COLUMN, read_rows};

    #[test]
    fn rows_are_read_again_from_every_format() {
        let dir = tempfile::tempdir().unwrap();
        let rows = [json!({"lr": 1e-6, "name": "a,\"b\""}), json!({"lr": null, "name": "c", "n": 2})];
        let rows: Vec<Map<String, Value>> = rows.iter().map(|row| row.as_object().unwrap().clone()).collect();
        for ending in ["csv", "parquet", "jsonl"] {
            let path = dir.path().join(format!("rows.{ending}"));
            write_rows(&path, &rows).unwrap();
            let read = read_rows(std::slice::from_ref(&path), &[], EVERY_COLUMN).unwrap();
            assert_eq!((read.len(), &read[0].values["name"]), (2, &json!("a,\"b\"")), "{ending}");
            let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            assert!(["1e-6", "0.000001", "1e-06"].contains(&&*text(&read[0].values["lr"])), "{ending}: {:?}", read[0].values);
        }
        assert!(write_rows(&dir.path().join("rows.xlsx"), &rows).unwrap_err().to_string().contains(".csv, .parquet or .jsonl"));
    }
}
