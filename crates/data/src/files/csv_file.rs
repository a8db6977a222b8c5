//! Reads CSV as Hugging Face's `datasets` does: the first line names the columns, and the values of a column decide its type.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use serde_json::Value;

use super::column_selection::RowValues;

/// The types of columns, in the order in which they are tried; each reads a value, or cannot.
const TYPES: [fn(&str) -> Option<Value>; 4] = [
    |text| text.parse::<i64>().ok().map(Value::from),
    |text| text.parse::<f64>().ok().filter(|number| number.is_finite()).map(Value::from),
    |text| match text {
        "True" | "TRUE" | "true" => Some(true.into()),
        "False" | "FALSE" | "false" => Some(false.into()),
        _ => None,
    },
    |text| Some(text.into()),
];

/// Reads the rows, and the names of all columns. An empty value is null.
///
/// # Errors
/// If a line has more or fewer values than the first one, or two columns have one name.
pub(crate) fn read(text: &str) -> Result<(Vec<RowValues>, Vec<String>)> {
    let mut reader = csv::ReaderBuilder::new().from_reader(text.as_bytes());
    let names: Vec<String> = reader.headers()?.iter().map(str::to_owned).collect();
    if let Some(name) = names.iter().enumerate().find_map(|(i, name)| names[..i].contains(name).then_some(name)) {
        bail!("two columns are called \"{name}\"");
    }
    let records = reader.records().collect::<Result<Vec<_>, _>>()?;
    let read = |column: usize| {
        let filled = || records.iter().filter_map(|record| record.get(column)).filter(|text| !text.is_empty());
        TYPES.iter().find(|read| filled().all(|text| read(text).is_some()))
    };
    let types: Vec<_> = (0..names.len()).map(read).collect();
    let cell = |column: usize, text: &str| {
        let value = types[column].filter(|_| !text.is_empty()).and_then(|read| read(text));
        (names[column].clone(), value.unwrap_or(Value::Null))
    };
    let rows = records.iter().map(|record| record.iter().enumerate().map(|(column, text)| cell(column, text)).collect());
    Ok((rows.collect(), BTreeSet::from_iter(names.clone()).into_iter().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// The values come from `datasets` 5.2.
    #[test]
    fn the_values_of_a_column_decide_its_type() {
        let text = "prompt,solution,x,b,e\n\"a, \"\"q\"\"\nz\",42,1.5,True,\n,7,,False,\n";
        let (rows, names) = read(text).unwrap();
        let expected = [
            json!({"prompt": "a, \"q\"\nz", "solution": 42, "x": 1.5, "b": true, "e": null}),
            json!({"prompt": null, "solution": 7, "x": null, "b": false, "e": null}),
        ];
        assert_eq!(rows.into_iter().map(Value::from).collect::<Vec<_>>(), expected);
        assert_eq!(names, ["b", "e", "prompt", "solution", "x"]);
        assert!(read("a,b\n1\n").is_err() && read("a,a\n1,2\n").is_err());
    }
}
