//! The terminal: one line per step with the most important metrics, one more per validation, and tables of samples.
//!
//! All other metrics are only in the metrics file. Colours are used if standard output is a terminal and NO_COLOR is unset. On a
//! terminal, a step's line is cut to the terminal's width: the least important metrics are left out.

use std::time::{Duration, Instant};

use anyhow::Result;
use comfy_table::ContentArrangement;
use console::{Style, Term, measure_text_width};

use super::{Cell, Ending, Metrics, Progress, Session, Table, Tracker, TrackerEntry};
use burnish_util::excerpt::beginning_of;
use burnish_util::number::{short, whole};
use burnish_util::printable::printable;
use burnish_util::time::human;

pub(super) const TRACKER: TrackerEntry = TrackerEntry {
    name: "console",
    doc: "One line per step on standard output: step, reward, KL, entropy, length, loss, gradient norm, tokens/s, time left; one per \
          validation; tables of samples",
    reads: &[],
    open: |session| Ok(Box::new(Console::new(session))),
};

/// A metric in the line of a step.
struct ShownMetric {
    label: &'static str,
    /// Names of metrics; the first that the step has is shown.
    metrics: &'static [&'static str],
    format: fn(f64) -> String,
    /// Priority: if the line is wider than the terminal, metrics with the lowest rank are left out first.
    rank: u8,
}

const fn shown(label: &'static str, metrics: &'static [&'static str], rank: u8) -> ShownMetric {
    ShownMetric { label, metrics, format: short, rank }
}

/// Metrics in the line of a step, from left to right; the time left, with [`RANK_OF_TIME`], comes last. A terminal also has a
/// bar, which shows tokens per second and the time left too.
const SHOWN: &[ShownMetric] = &[
    shown("loss", &["train/loss"], 9),
    shown("reward", &["critic/score/mean", "objective/scores"], 9),
    shown("kl", &["actor/kl_loss", "actor/reward_kl_penalty", "objective/kl"], 8),
    shown("ppo_kl", &["actor/ppo_kl"], 1),
    shown("entropy", &["actor/entropy", "policy/entropy_avg"], 6),
    shown("length", &["response_length/mean"], 7),
    shown("truncated", &["response/truncated_ratio"], 4),
    shown("grad_norm", &["actor/grad_norm", "train/grad_norm"], 5),
    ShownMetric { format: whole, ..shown("tokens/s", &["perf/throughput"], 2) },
];

const RANK_OF_TIME: u8 = 3;

/// Prefixes of the metrics that the line of a validation shows.
const VALIDATION: [&str; 2] = ["val-core/", "val/loss"];

/// Width of tables, in columns, if standard output is a file; the maximum on a terminal.
const WIDTH: u16 = 120;

pub(super) struct Console {
    progress: Progress,
    total_steps: u64,
    /// Number of steps done at the start of this process, and the time of that start.
    start: (u64, Instant),
    /// Terminal width, and the highest rank left out at that width. It stays left out, so that lines keep their form.
    left_out: (usize, u8),
}

impl Console {
    /// Creates the tracker of a run.
    pub(super) fn new(session: &Session) -> Self {
        let start = (session.resumed_step.unwrap_or(0), Instant::now());
        Self { progress: session.progress.clone(), total_steps: session.total_steps, start, left_out: (0, 0) }
    }

    /// Returns the line of a step, at most `width` columns wide, and the line of its validation if it has one.
    fn lines(&mut self, step: u64, metrics: &Metrics, width: usize) -> Vec<String> {
        let (label, bold) = (Style::new().dim(), Style::new().bold());
        let digits = self.total_steps.to_string().len();
        let step_text = format!("{} {}", label.apply_to("step"), bold.apply_to(format!("{step:digits$}/{}", self.total_steps)));
        let pair = |name: &str, value: String| format!("  {} {value}", label.apply_to(printable(name)));
        let known = |names: &[&str]| names.iter().find_map(|name| metrics.get(name));
        let numbers =
            SHOWN.iter().filter_map(|shown| Some((shown.rank, pair(shown.label, (shown.format)(known(shown.metrics)?)))));
        let mut numbers: Vec<(u8, String)> = numbers.collect();
        let has_numbers = !numbers.is_empty();
        numbers.extend(self.left(step).map(|left| (RANK_OF_TIME, format!("  {left} left"))));
        let total = |parts: &[(u8, String)]| parts.iter().map(|(_, text)| measure_text_width(text)).sum::<usize>();
        let mut left_out = if self.left_out.0 == width { self.left_out.1 } else { 0 };
        numbers.retain(|(rank, _)| *rank > left_out);
        while measure_text_width(&step_text) + total(&numbers) > width
            && let Some(least) = (0..numbers.len()).min_by_key(|&i| numbers[i].0).filter(|_| numbers.len() > 1)
        {
            left_out = numbers.remove(least).0;
        }
        self.left_out = (width, left_out);
        let validated: String = metrics
            .iter()
            .filter(|(name, _)| VALIDATION.iter().any(|start| name.starts_with(start)))
            .map(|(name, value)| pair(name, bold.apply_to(short(value)).to_string()))
            .collect();
        let mut lines = Vec::new();
        if has_numbers {
            let numbers: String = numbers.into_iter().map(|(_, text)| text).collect();
            lines.push(format!("{step_text}{numbers}"));
        }
        if !validated.is_empty() {
            lines.push(format!("{step_text}{validated}"));
        }
        lines
    }

    /// Returns the estimated time left, from the mean time per step so far.
    fn left(&self, step: u64) -> Option<String> {
        let (before, since) = self.start;
        let done = step.checked_sub(before).filter(|done| *done > 0)?;
        let steps = self.total_steps.checked_sub(step).filter(|left| *left > 0)?;
        Duration::try_from_secs_f64(since.elapsed().as_secs_f64() * steps as f64 / done as f64).ok().map(human)
    }
}

impl Tracker for Console {
    fn log(&mut self, step: u64, metrics: &Metrics) -> Result<()> {
        let width = Term::stdout().size_checked().map_or(usize::MAX, |(_, columns)| columns.into());
        self.lines(step, metrics, width).iter().try_for_each(|line| self.progress.println(line))
    }

    fn table(&mut self, step: u64, table: &Table) -> Result<()> {
        let width = Term::stdout().size_checked().map_or(WIDTH, |(_, columns)| columns.clamp(40, WIDTH));
        self.progress.println(&drawn(step, table, width))
    }

    fn finish(&mut self, _: &Ending) -> Result<()> {
        Ok(())
    }
}

/// Number of characters of a cell that are shown; `samples.jsonl` has the whole text.
const LONGEST_CELL: usize = 10_000;
/// Number of characters after which a word is broken: the layout takes time quadratic in a word's length.
const LONGEST_WORD: usize = 480;

/// Zero-width characters that stand for colours during layout, because the layout would count the characters of escape codes.
const GOOD: char = '\u{2061}';
const BAD: char = '\u{2062}';
const END: char = '\u{2063}';

/// Draws a table within `width` columns and wraps long texts. The numbers of a row are green if its last cell is positive, red if
/// it is negative. A number that differs from 0 only by rounding, compared with the largest of the table, counts as 0: the
/// advantage of a response that scored like all others may be 3.7e-9.
fn drawn(step: u64, table: &Table, width: u16) -> String {
    let mut shown = comfy_table::Table::new();
    shown.load_preset(comfy_table::presets::UTF8_FULL_CONDENSED);
    shown.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    shown.set_header(std::iter::once("step".to_owned()).chain(table.columns.iter().map(|name| cell_text(name))));
    let number = |cell: &Cell| if let Cell::Number(number) = cell { Some(*number) } else { None };
    let numbers = table.rows.iter().flatten().filter_map(number).filter(|number| number.is_finite());
    let noise = f64::from(f32::EPSILON) * numbers.fold(0.0, |most: f64, number| most.max(number.abs()));
    let number = |cell: &Cell| number(cell).map(|number| if number.abs() <= noise { 0.0 } else { number });
    for row in &table.rows {
        let mark = match row.last().and_then(number) {
            Some(last) if last > 0.0 => Some(GOOD),
            Some(last) if last < 0.0 => Some(BAD),
            _ => None,
        };
        let cell = |cell: &Cell| match (number(cell), mark) {
            (Some(number), Some(mark)) => format!("{mark}{}{END}", short(number)),
            (Some(number), None) => short(number),
            (None, _) => cell_text(&cell.to_string()),
        };
        shown.add_row(std::iter::once(step.to_string()).chain(row.iter().map(cell)));
    }
    coloured(&shown.to_string(), console::colors_enabled())
}

fn coloured(text: &str, colours: bool) -> String {
    [(GOOD, "\u{1b}[32m"), (BAD, "\u{1b}[31m"), (END, "\u{1b}[0m")]
        .iter()
        .fold(text.to_owned(), |text, (mark, code)| text.replace(*mark, if colours { code } else { "" }))
}

/// Returns printable text without the colour marks. The text and its words are cut to lengths that the layout can handle.
fn cell_text(text: &str) -> String {
    let shown = printable(&beginning_of(text, LONGEST_CELL)).replace([GOOD, BAD, END], "").replace('\t', "    ");
    let (mut broken, mut length) = (String::with_capacity(shown.len()), 0);
    for c in shown.chars() {
        length = if [' ', '\n'].contains(&c) { 0 } else { length + 1 };
        if length > LONGEST_WORD {
            broken.push('\n');
            length = 1;
        }
        broken.push(c);
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_numbers_to_watch_and_a_validation_its_own() {
        console::set_colors_enabled(false);
        let session = Session { resumed_step: Some(2), ..Session::in_folder("local".into(), None) };
        let mut console = Console::new(&session);
        let values =
            [("actor/entropy", 1.23456), ("critic/score/mean", -0.5), ("actor/pg_loss", 3.0), ("val-core/a/acc/mean@1", 0.75)];
        let lines = console.lines(10, &values.into_iter().collect(), usize::MAX);
        assert_eq!(lines, ["step 10/10  reward -0.5  entropy 1.235", "step 10/10  val-core/a/acc/mean@1 0.75"]);
        let lines = console.lines(3, &[("train/loss", f64::NAN)].into_iter().collect(), usize::MAX);
        assert_eq!(lines, ["step  3/10  loss nan  0s left"]);

        let all = SHOWN.iter().filter(|shown| shown.label != "loss").map(|shown| (shown.metrics[0], 1234.5678)).collect();
        let full = &console.lines(3, &all, usize::MAX)[0];
        assert!(full.contains("tokens/s 1,235") && full.ends_with("  0s left"), "{full}");
        for (width, expected) in [
            (
                120,
                "step  3/10  reward 1235  kl 1235  entropy 1235  length 1235  truncated 1235  grad_norm 1235  tokens/s 1,235  0s left",
            ),
            (80, "step  3/10  reward 1235  kl 1235  entropy 1235  length 1235  grad_norm 1235"),
            (40, "step  3/10  reward 1235  kl 1235"),
            (0, "step  3/10  reward 1235"),
        ] {
            assert_eq!(console.lines(3, &all, width), [expected], "{width} columns");
        }
        let short = || [("critic/score/mean", 1.0), ("actor/ppo_kl", 0.0)].into_iter().collect();
        assert_eq!(console.lines(3, &all, 60).len(), 1);
        assert_eq!(console.lines(4, &short(), 60), ["step  4/10  reward 1"], "what was left out stays out");
    }

    #[test]
    fn tables_wrap_and_never_command_the_terminal() {
        let row = |text: &str, advantage: f64| vec![Cell::from(text), Cell::None, Cell::Number(advantage)];
        let columns = ["response", "score", "advantage"].map(str::to_owned).to_vec();
        let rows = vec![row("\u{1b}[2J said\nso", 0.25), row(&"long ".repeat(40), -1.0), row("the same", 3.74e-9)];
        let text = drawn(7, &Table { name: "completions", columns, rows }, 60);
        assert!(
            text.contains("\\u{1b}[2J said")
                && text.contains("none")
                && !text.contains("e-9")
                && !text.contains(['\u{1b}', GOOD, BAD, END]),
            "{text}"
        );
        assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
        assert_eq!(coloured(&format!("{BAD}-1{END}"), true), "\u{1b}[31m-1\u{1b}[0m");
    }

    /// The layout gets neither more text than is shown nor a word for which layout would take quadratic time.
    #[test]
    fn a_cell_is_bounded_whatever_its_text_is() {
        for text in ["x", "文", "\u{301}", "\u{1b}", "\t", " ", "a b "] {
            let shown = cell_text(&text.repeat(1_000_000));
            assert!(shown.lines().flat_map(|line| line.split(' ')).all(|word| word.chars().count() <= LONGEST_WORD), "{text:?}");
            assert!(shown.chars().count() < 8 * LONGEST_CELL && shown.ends_with("000 characters)"), "{text:?}");
        }
        assert_eq!(cell_text("a\tb\nc"), "a    b\nc");
        let row = vec![Cell::from("文".repeat(5_000_000).as_str()), Cell::from("x".repeat(5_000_000).as_str())];
        let table = Table { name: "completions", columns: vec!["a".repeat(1_000_000), "b".to_owned()], rows: vec![row; 5] };
        assert!(drawn(1, &table, 120).lines().all(|line| console::measure_text_width(line) <= 120));
    }
}
