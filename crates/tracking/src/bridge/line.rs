//! A row as the line that the Python process reads.

use std::fmt::Write;
use std::time::UNIX_EPOCH;

use serde_json::Value;

use crate::Cell;
use crate::outbox::{Content, QueuedRow};

/// Returns a row as JSON, with Python's words for the numbers that JSON lacks.
pub(super) fn line(row: &QueuedRow, rename: fn(&str) -> String) -> String {
    let step = row.step;
    match &row.content {
        Content::Metrics(metrics) => {
            let time = row.time.duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_millis());
            let mut line = format!("{{\"step\":{step},\"time\":{time},\"metrics\":{{");
            for (i, (name, value)) in metrics.iter().enumerate() {
                let comma = if i > 0 { "," } else { "" };
                _ = write!(line, "{comma}{}:{}", Value::from(rename(name)), number(value));
            }
            line.push_str("}}");
            line
        }
        Content::Table(table) => {
            let rows: Vec<String> = table.rows.iter().map(|row| list(row.iter().map(cell))).collect();
            let (name, columns) = (Value::from(table.name), Value::from(table.columns.clone()));
            format!("{{\"step\":{step},\"name\":{name},\"columns\":{columns},\"rows\":{}}}", list(rows))
        }
    }
}

pub(super) fn list(items: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(","))
}

pub(super) fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => Value::from(text.as_str()).to_string(),
        Cell::Number(value) => number(*value),
        Cell::None => "null".to_owned(),
    }
}

fn number(value: f64) -> String {
    match value {
        value if value.is_finite() => Value::from(value).to_string(),
        value if value.is_nan() => "NaN".to_owned(),
        value => if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned(),
    }
}
