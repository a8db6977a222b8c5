//! Tables in the client's form: a JSON file among the run's media, and a row of history that refers to it.

use std::path::Path;

use anyhow::Result;

use super::super::{Cell, StepTable};
use super::records;
use burnish_util::crc::IEEE;
use burnish_util::no_follow;
use burnish_util::protobuf::ProtobufMessage;

/// Writes the file of a table below `files`, and returns its path relative to `files` and its size. Equal tables of a step have
/// equal paths.
pub(super) fn write(files: &Path, step: u64, table: &StepTable) -> Result<(String, usize)> {
    let text = json(table)?;
    // The client's file names end in a hash too, because a file that was uploaded under a name never changes.
    let path = format!("media/table/{}_{step}_{:08x}.table.json", table.name.replace('/', "_"), IEEE.checksum(text.as_bytes()));
    let place = files.join(&path);
    no_follow::write(&place, text.as_bytes())?;
    Ok((path, text.len()))
}

/// Adds the items that make a table part of a row.
pub(super) fn items(row: &mut ProtobufMessage, table: &StepTable, path: &str, size: usize) -> Result<()> {
    let [rows, columns, size] = [table.rows.len(), table.columns.len(), size].map(|count| count.to_string());
    let path = serde_json::to_string(path)?;
    let items = [
        ("_type", "\"table-file\""),
        ("path", &path),
        ("size", &size),
        ("nrows", &rows),
        ("ncols", &columns),
        ("log_mode", "\"IMMUTABLE\""),
    ];
    items.iter().for_each(|(key, value)| records::item(row, &[table.name, key], value));
    Ok(())
}

fn json(table: &StepTable) -> Result<String> {
    let cell = |cell: &Cell| match cell {
        Cell::Text(text) => Ok(serde_json::to_string(text)?),
        Cell::Number(value) => Ok(records::number(*value)),
        Cell::None => Ok("null".to_owned()),
    };
    let row = |row: &Vec<Cell>| Ok(format!("[{}]", row.iter().map(cell).collect::<Result<Vec<_>>>()?.join(",")));
    let rows: Vec<String> = table.rows.iter().map(row).collect::<Result<_>>()?;
    Ok(format!("{{\"columns\":{},\"data\":[{}]}}", serde_json::to_string(&table.columns)?, rows.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected text is the client's file of this table.
    #[test]
    fn the_file_is_the_clients() {
        let text = |text: &str| Cell::Text(text.to_owned());
        let numbers = [1.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        let rows = ["a\nb", "c", "d", "d"].into_iter().zip(numbers).map(|(name, number)| vec![text(name), Cell::Number(number)]);
        let rows = rows.chain([vec![text("e"), Cell::None]]).collect();
        let table = StepTable { name: "samples", columns: vec!["q".into(), "score".into()], rows, brief: Vec::new() };
        let expected = r#"{"columns":["q","score"],"data":[["a\nb",1.5],["c",NaN],["d",Infinity],["d",-Infinity],["e",null]]}"#;
        assert_eq!(json(&table).unwrap(), expected);
    }
}
