//! The results of a run's validations, as a short table.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use burnish_util::json_number::from_value;
use burnish_util::jsonl::lines;

/// The maximum columns and rows of the table.
const MAX_METRICS: usize = 4;
const MAX_ROWS: usize = 12;

/// The validations of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Curve {
    metrics: Vec<String>,
    /// The step, and the value of each metric.
    rows: Vec<(u64, Vec<Option<f64>>)>,
}

#[derive(Deserialize)]
struct Row {
    step: u64,
    data: Map<String, Value>,
}

impl Curve {
    /// Reads the validations up to a step. An unreadable file gives no validations, and malformed lines are left out.
    pub(super) fn read(metrics: &Path, until: u64) -> Self {
        let rows = lines(metrics).filter_map(|line| serde_json::from_str(&line).ok());
        let is_main = |name: &str| name.starts_with("val-core/") || name == "val/loss";
        let validated = rows.filter(|row: &Row| row.step <= until && row.data.keys().any(|name| is_main(name)));
        let validated: Vec<Row> = validated.collect();
        let mut names: Vec<String> = Vec::new();
        for name in validated.iter().flat_map(|row| row.data.keys()).filter(|name| is_main(name)) {
            if names.len() < MAX_METRICS && !names.contains(name) {
                names.push(name.clone());
            }
        }
        let values = |row: &Row| names.iter().map(|name| row.data.get(name).and_then(from_value)).collect();
        let rows = validated.iter().map(|row| (row.step, values(row))).collect();
        Self { metrics: names, rows }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns a Markdown table: the first validation, the last, and some between them.
    pub(crate) fn to_table(&self) -> String {
        let names: Vec<String> = self.metrics.iter().map(|name| format!("`{name}`")).collect();
        let head = format!("| Step | {} |\n|---|{}\n", names.join(" | "), "---|".repeat(names.len()));
        let (all, max) = (self.rows.len(), self.rows.len().min(MAX_ROWS));
        let chosen = (0..max).map(|i| if max > 1 { i * (all - 1) / (max - 1) } else { 0 });
        let cell = |value: &Option<f64>| value.map_or_else(|| "–".to_owned(), rounded);
        let row = |(step, values): &(u64, Vec<Option<f64>>)| {
            format!("| {step} | {} |\n", values.iter().map(cell).collect::<Vec<_>>().join(" | "))
        };
        head + &chosen.map(|i| row(&self.rows[i])).collect::<String>()
    }
}

/// Formats a number with four decimals, without trailing zeros.
fn rounded(value: f64) -> String {
    let text = format!("{value:.4}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    text.to_owned()
}
