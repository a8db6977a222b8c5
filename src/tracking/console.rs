//! verl's console line, which log parsers know: `step:3 - actor/pg_loss:-0.0123457 - critic/score/mean:0.5`.

use std::fmt::Write;

use anyhow::Result;
use comfy_table::ContentArrangement;

use super::{Entry, Metrics, Progress, Table, Tracker};

pub(super) const TRACKER: Entry = Entry {
    name: "console",
    doc: "One line per step on standard output, `step:N - name:value - …`, with six significant digits; tables above it",
    open: |session| Ok(Box::new(Console { progress: session.progress.clone() })),
};

/// Columns of a table's lines, in a terminal and in a file alike.
const WIDTH: u16 = 120;

struct Console {
    progress: Progress,
}

impl Tracker for Console {
    fn log(&mut self, step: u64, metrics: &Metrics) -> Result<()> {
        self.progress.println(&line(step, metrics))
    }

    fn table(&mut self, step: u64, table: &Table) -> Result<()> {
        let mut shown = comfy_table::Table::new();
        // Long texts are broken into lines of what a terminal shows.
        shown.set_content_arrangement(ContentArrangement::Dynamic).set_width(WIDTH);
        shown.set_header(std::iter::once("step").chain(table.columns.iter().map(String::as_str)));
        for row in &table.rows {
            shown.add_row(std::iter::once(step.to_string()).chain(row.iter().cloned()));
        }
        self.progress.println(&shown.to_string())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}

fn line(step: u64, metrics: &Metrics) -> String {
    metrics.iter().fold(format!("step:{step}"), |mut line, (name, value)| {
        _ = write!(line, " - {name}:{}", short(value));
        line
    })
}

/// Six significant digits, without trailing zeros; whole numbers up to 2^53 in full. Python's `float` reads all of it back.
fn short(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() <= (1u64 << 53) as f64 {
        return format!("{value}");
    }
    if !value.is_finite() {
        return format!("{value}").to_lowercase();
    }
    let rounded: f64 = format!("{value:.5e}").parse().unwrap_or(value);
    if (1e-4..1e16).contains(&rounded.abs()) { format!("{rounded}") } else { format!("{rounded:e}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_verls() {
        let metrics: Metrics = [("training/global_step", 3.0), ("actor/pg_loss", -0.012345678)].into_iter().collect();
        assert_eq!(line(3, &metrics), "step:3 - training/global_step:3 - actor/pg_loss:-0.0123457");
    }

    #[test]
    fn numbers_are_short_and_readable_by_python() {
        let cases = [
            (1e-6, "1e-6"),
            (0.5, "0.5"),
            (12345.678, "12345.7"),
            (9_876_543.25, "9876540"),
            (1_234_567.0, "1234567"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
            (1.5e300, "1.5e300"),
        ];
        for (value, text) in cases {
            assert_eq!(short(value), text);
        }
    }
}
