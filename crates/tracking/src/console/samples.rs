//! Samples in the terminal: two rows, one line each.

use console::{Style, measure_text_width, truncate_str};

use super::super::{Cell, StepTable};
use burnish_util::excerpt::beginning_of;
use burnish_util::number::four_digits;
use burnish_util::printable::printable;

/// Number of rows that are shown; `samples.jsonl` and the report have all.
const ROWS: usize = 2;
/// Number of characters of a text that are looked at.
const LONGEST_TEXT: usize = 1000;
/// Smallest width of a text, in columns.
const MIN_WIDTH: usize = 12;
/// The column whose sign is shown by a colour.
const ADVANTAGE: &str = "advantage";

/// Draws the first rows of a table within `width` columns, one line each: texts are cut to the room that numbers leave. An
/// advantage is green if it is positive and red if it is negative. A number that differs from 0 only by rounding, compared with
/// the largest of the table, counts as 0: the advantage of a response that scored like all others may be 3.7e-9.
pub(super) fn drawn(step: u64, table: &StepTable, width: usize) -> String {
    let number = |cell: &Cell| if let Cell::Number(number) = cell { Some(*number) } else { None };
    let numbers = table.rows.iter().flatten().filter_map(number).filter(|number| number.is_finite());
    let noise = f64::from(f32::EPSILON) * numbers.fold(0.0, |max: f64, number| max.max(number.abs()));
    let is_text = |column: usize| table.rows.iter().any(|row| matches!(row.get(column), Some(Cell::Text(_))));
    let cell = |row: usize, column: usize, cell: &Cell| match (number(cell), table.brief.get(row).filter(|_| column == 0)) {
        (Some(number), _) => four_digits(if number.abs() <= noise { 0.0 } else { number }),
        (None, Some(brief)) => line(brief),
        (None, None) => line(&cell.to_string()),
    };
    let head: Vec<String> = table.columns.iter().map(|name| line(name)).collect();
    let rows: Vec<Vec<String>> = (table.rows.iter().take(ROWS).enumerate())
        .map(|(row, cells)| cells.iter().enumerate().map(|(column, one)| cell(row, column, one)).collect())
        .collect();
    let columns = table.columns.len();
    let widest = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).chain(head.get(column));
        cells.map(|text| measure_text_width(text)).max().unwrap_or(0)
    };
    let mut widths: Vec<usize> = (0..columns).map(widest).collect();
    fit(&mut widths, is_text, width.saturating_sub(2));
    let draw = |cells: &[String], style: &dyn Fn(usize, String) -> String| {
        let parts = cells.iter().zip(&widths).enumerate().filter(|(_, (_, width))| **width > 0);
        let parts = parts.map(|(column, (text, width))| {
            let cut = truncate_str(text, *width, "…").into_owned();
            let room = " ".repeat(width - measure_text_width(&cut).min(*width));
            let shown = style(column, cut);
            if is_text(column) { shown + &room } else { room + &shown }
        });
        format!("  {}", parts.collect::<Vec<_>>().join("  ")).trim_end().to_owned()
    };
    let dim = Style::new().dim();
    let mut lines = vec![format!("{}", dim.apply_to(format!("samples of step {step}")))];
    lines.push(draw(&head, &|_, text| dim.apply_to(text).to_string()));
    for (cells, values) in rows.iter().zip(&table.rows) {
        lines.push(draw(
            cells,
            &|column, text| match values.get(column).and_then(number).filter(|_| head[column] == ADVANTAGE) {
                Some(advantage) if advantage > noise => Style::new().green().apply_to(text).to_string(),
                Some(advantage) if advantage < -noise => Style::new().red().apply_to(text).to_string(),
                _ => text,
            },
        ));
    }
    lines.join("\n")
}

/// Narrows the widest texts, and leaves out columns from the right, until all columns and the gaps between them fit.
fn fit(widths: &mut [usize], is_text: impl Fn(usize) -> bool, room: usize) {
    let total =
        |widths: &[usize]| widths.iter().filter(|width| **width > 0).map(|width| width + 2).sum::<usize>().saturating_sub(2);
    while total(widths) > room {
        let texts = (0..widths.len()).filter(|column| is_text(*column) && widths[*column] > MIN_WIDTH);
        match texts.max_by_key(|column| widths[*column]) {
            Some(widest) => {
                let over = total(widths) - room;
                let others =
                    (0..widths.len()).filter(|column| *column != widest && is_text(*column)).map(|column| widths[column]);
                let next = others.max().unwrap_or(0).max(MIN_WIDTH);
                // Each column becomes at least one character narrower, at most as narrow as the next text.
                widths[widest] -= over.min(widths[widest].saturating_sub(next).max(1));
            }
            None => match widths.iter().rposition(|width| *width > 0) {
                Some(last) if last > 0 => widths[last] = 0,
                _ => return widths.iter_mut().take(1).for_each(|first| *first = (*first).min(room)),
            },
        }
    }
}

/// Returns a text as one printable line.
fn line(text: &str) -> String {
    let text = beginning_of(text, LONGEST_TEXT);
    printable(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_one_line_and_never_commands_the_terminal() {
        console::set_colors_enabled(false);
        let row = |text: &str, advantage: f64| {
            vec![Cell::from("<|im_start|>user\n1+2=<|im_end|>"), Cell::from(text), Cell::None, Cell::Number(advantage)]
        };
        let columns = ["query", "response", "score", "advantage"].map(str::to_owned).to_vec();
        let rows = vec![row("\u{1b}[2J said\nso", 0.25), row(&"long ".repeat(40), 3.74e-9), row("third", 1.0)];
        let brief = vec!["1+2=".to_owned(), "1+2=".to_owned(), "1+2=".to_owned()];
        let table = StepTable { name: "completions", columns, rows, brief };
        let text = drawn(7, &table, 60);
        assert_eq!(
            text,
            [
                "samples of step 7",
                "  query  response                           score  advantage",
                "  1+2=   \\u{1b}[2J said so                   none     0.2500",
                "  1+2=   long long long long long long lo…   none      0.000",
            ]
            .join("\n")
        );
        for width in [0, 20, 40, 80, 200] {
            assert!(drawn(7, &table, width).lines().skip(1).all(|line| measure_text_width(line) <= width.max(2)), "{width}");
        }
        console::set_colors_enabled(true);
        assert!(drawn(7, &table, 60).contains("\u{1b}[32m0.2500\u{1b}[0m"));
        console::set_colors_enabled(false);
    }

    /// Neither a huge text nor a huge word takes long.
    #[test]
    fn a_cell_is_bounded_whatever_its_text_is() {
        let row = vec![Cell::from("文".repeat(5_000_000).as_str()), Cell::from("x".repeat(5_000_000).as_str())];
        let columns = vec!["a".repeat(1_000_000), "b".to_owned()];
        let table = StepTable { name: "completions", columns, rows: vec![row; 5], brief: Vec::new() };
        assert!(drawn(1, &table, 120).lines().all(|line| measure_text_width(line) <= 120));
    }
}
