//! Reads JSON rows as Hugging Face's `datasets` does: JSON lines, one JSON array of objects, or objects one after another. NaN
//! and infinity, which Python writes, are numbers.

use std::borrow::Cow;
use std::collections::BTreeSet;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Deserializer, Value};

use super::column_selection::{ColumnSelection, RowValues};
use burnish_util::exact_json::{Exact, may_exceed_64_bits};
use burnish_util::python_tagged::{NUMBERS, tagged};

/// Reads the rows, and the names of all columns.
///
/// # Errors
/// If the text is not rows of JSON, or a selected column has an integer beyond 64 bits.
pub(crate) fn read(text: &str, selection: &ColumnSelection) -> Result<(Vec<RowValues>, Vec<String>)> {
    let text = with_tagged_numbers(text);
    let rows: Vec<RowValues> = if text.trim_start().starts_with('[') {
        serde_json::from_str(&text).context("not an array of objects")?
    } else {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let parse = |(i, line)| serde_json::from_str(line).with_context(|| format!("line {} is not a JSON object", i + 1));
        let rows = match lines.map(parse).collect::<Result<Vec<RowValues>>>() {
            Ok(rows) => Some(rows),
            Err(error) => match Deserializer::from_str(&text).into_iter::<RowValues>().collect::<Result<Vec<_>, _>>() {
                // A single object over several lines is unlikely to be a row.
                Ok(rows) => Some(rows).filter(|rows| rows.len() > 1),
                Err(_) => return Err(error),
            },
        };
        rows.filter(|rows| !rows.iter().any(is_table)).context(
            "the file is one JSON object, not rows: write an array of objects, or one object per line (pandas: \
             df.to_json(FILE, orient=\"records\", lines=True))",
        )?
    };
    if may_exceed_64_bits(&text) {
        check_integers(&text, |column| selection.has(column))?;
    }
    let known: BTreeSet<&String> = rows.iter().flat_map(RowValues::keys).collect();
    let known = known.into_iter().cloned().collect();
    Ok((rows, known))
}

/// Returns the text with tagged values in place of the [`NUMBERS`] outside of strings.
fn with_tagged_numbers(text: &str) -> Cow<'_, str> {
    if !NUMBERS.iter().any(|number| text.contains(number)) {
        return Cow::Borrowed(text);
    }
    let (mut result, mut copied, mut in_string) = (String::with_capacity(text.len()), 0, false);
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => in_string = !in_string,
            b'\\' if in_string => at += 1,
            b'N' | b'I' | b'-' if !in_string => {
                if let Some(number) = NUMBERS.iter().find(|number| bytes[at..].starts_with(number.as_bytes())) {
                    result.push_str(&text[copied..at]);
                    result.push_str(&tagged("float", *number).to_string());
                    at += number.len();
                    copied = at;
                    continue;
                }
            }
            // A string ends with its line, so that a missing quote concerns one line.
            b'\n' => in_string = false,
            _ => {}
        }
        at += 1;
    }
    result.push_str(&text[copied..]);
    Cow::Owned(result)
}

/// Returns true if the object is a whole table by columns, with row numbers as keys: the default of pandas' `to_json`.
fn is_table(object: &RowValues) -> bool {
    let is_number = |key: &str| key.bytes().all(|byte| byte.is_ascii_digit());
    let has_rows = |rows: &RowValues| rows.contains_key("0") && rows.keys().all(|key| is_number(key));
    let is_column = |column: &Value| column.as_object().is_some_and(has_rows);
    !object.is_empty() && object.values().all(is_column)
}

/// Refuses integers that were rounded because they were read as floats. Columns that are not selected may have them.
fn check_integers(text: &str, is_selected: impl Fn(&str) -> bool) -> Result<()> {
    let read = |text: &str| Exact::parse(text).map_err(|error| anyhow!("{error}"));
    let lines = || text.lines().filter(|line| !line.trim().is_empty());
    // Only the lines that may have such an integer are read again.
    let by_line = || lines().map(|line| if may_exceed_64_bits(line) { read(line) } else { Ok(Exact::Null) }).collect();
    let rows = match read(text) {
        Ok(Exact::List(rows)) => rows,
        _ => match by_line() {
            Ok(rows) => rows,
            Err(error) => match objects(text) {
                Some(objects) => objects.into_iter().map(read).collect::<Result<_>>()?,
                None => return Err(error),
            },
        },
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

/// Returns the texts of objects one after another; `None` if the text is something else.
fn objects(text: &str) -> Option<Vec<&str>> {
    let mut stream = Deserializer::from_str(text).into_iter::<RowValues>();
    let mut texts = Vec::new();
    loop {
        let start = stream.byte_offset();
        match stream.next() {
            Some(Ok(_)) => texts.push(&text[start..stream.byte_offset()]),
            Some(Err(_)) => return None,
            None => return Some(texts),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_python_are_found_outside_of_strings() {
        let [nan, infinite] = ["NaN", "-Infinity"].map(|number| tagged("float", number).to_string());
        let text = "{\"NaN\": NaN, \"a\\\"\": [-1, -Infinity, \"NaN\"]}\n{\"b\": \"\\\\\"}\n";
        let expected = format!("{{\"NaN\": {nan}, \"a\\\"\": [-1, {infinite}, \"NaN\"]}}\n{{\"b\": \"\\\\\"}}\n");
        assert_eq!(with_tagged_numbers(text), expected);
        assert!(matches!(with_tagged_numbers("{\"a\": 1}"), Cow::Borrowed(_)));
    }
}
