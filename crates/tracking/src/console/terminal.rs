//! The tracker of the terminal: the line of a step, and the tables of samples.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use console::{Style, Term, measure_text_width};

use super::super::{Ending, Metrics, Progress, StepTable, TrackedRun, Tracker, TrackerEntry};
use super::samples;
use burnish_util::number::{four_digits, with_commas};
use burnish_util::printable::printable;
use burnish_util::time::human;

pub(in super::super) const TRACKER: TrackerEntry = TrackerEntry {
    name: "console",
    doc: "One line per step on standard output: step, reward, KL, entropy, length, loss, gradient norm, tokens/s, time left; one per \
          validation; two samples, a few times in a run",
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
    ShownMetric { label, metrics, format: four_digits, rank }
}

/// Metrics in the line of a step, from left to right; the time left, with [`RANK_OF_TIME`], comes last. A terminal also has a
/// bar, which shows tokens per second and the time left too.
const SHOWN: &[ShownMetric] = &[
    shown("loss", &["train/loss"], 9),
    shown("accuracy", &["train/accuracy", "train/rewards/accuracies"], 9),
    shown("margin", &["train/margin", "train/rewards/margins"], 8),
    shown("token_acc", &["train/mean_token_accuracy"], 4),
    shown("reward", &["critic/score/mean", "objective/scores"], 9),
    shown("kl", &["actor/kl_loss", "actor/reward_kl_penalty", "objective/kl"], 8),
    shown("ppo_kl", &["actor/ppo_kl"], 1),
    shown("entropy", &["actor/entropy", "policy/entropy_avg"], 6),
    shown("length", &["response_length/mean"], 7),
    shown("truncated", &["response/truncated_ratio"], 4),
    shown("grad_norm", &["actor/grad_norm", "train/grad_norm"], 5),
    ShownMetric { format: with_commas, ..shown("tokens/s", &["perf/throughput"], 2) },
];

const RANK_OF_TIME: u8 = 3;

/// Metrics in the line of a validation, with their labels. Names that begin with [`CORE`] come first, unabbreviated.
const VALIDATION: &[(&str, &str)] = &[
    ("val/loss", "val loss"),
    ("val/accuracy", "accuracy"),
    ("val/rewards/accuracies", "accuracy"),
    ("val/margin", "margin"),
    ("val/rewards/margins", "margin"),
];
const CORE: &str = "val-core/";

/// Width of samples, in columns, if standard output is a file; the maximum on a terminal.
const WIDTH: usize = 120;
/// Number of parts of a run that begin with samples, and the least number of steps between samples. Other trackers get all
/// samples.
const TABLES: (u64, u64) = (4, 5);
/// Smallest width of a number, in columns.
const NUMBER: usize = 6;

pub(in super::super) struct Console {
    progress: Progress,
    total_steps: u64,
    /// Number of steps done at the start of this process, and the time of that start.
    start: (u64, Instant),
    /// Terminal width, and the highest rank left out at that width. It stays left out, so that lines keep their form.
    left_out: (usize, u8),
    /// Largest width of the numbers of each label so far, so that columns stay in place.
    widths: HashMap<&'static str, usize>,
    /// Next step whose samples are shown, by the name of the table.
    next_table: HashMap<&'static str, u64>,
}

impl Console {
    /// Creates the tracker of a run.
    pub(in super::super) fn new(session: &TrackedRun) -> Self {
        let start = (session.resumed_step.unwrap_or(0), Instant::now());
        Self {
            progress: session.progress.clone(),
            total_steps: session.total_steps,
            start,
            left_out: (0, 0),
            widths: HashMap::new(),
            next_table: HashMap::new(),
        }
    }

    /// Returns the line of a step, at most `width` columns wide, and the line of its validation if it has one.
    fn lines(&mut self, step: u64, metrics: &Metrics, width: usize) -> Vec<String> {
        let (label, bold) = (Style::new().dim(), Style::new().bold());
        let digits = self.total_steps.to_string().len();
        let step_text = format!("{} {}", label.apply_to("step"), bold.apply_to(format!("{step:digits$}/{}", self.total_steps)));
        let pair = |name: &str, value: String| format!("  {} {value}", label.apply_to(printable(name)));
        let known = |names: &[&str]| names.iter().find_map(|name| metrics.get(name));
        let widths = &mut self.widths;
        let numbers = SHOWN.iter().filter_map(|shown| {
            let number = (shown.format)(known(shown.metrics)?);
            let width = widths.entry(shown.label).or_insert(NUMBER);
            *width = number.len().max(*width);
            Some((shown.rank, pair(shown.label, format!("{number:>width$}", width = *width))))
        });
        let mut numbers: Vec<(u8, String)> = numbers.collect();
        let has_numbers = !numbers.is_empty();
        numbers.extend(self.time_left(step).map(|left| (RANK_OF_TIME, format!("  {left} left"))));
        let total = |parts: &[(u8, String)]| parts.iter().map(|(_, text)| measure_text_width(text)).sum::<usize>();
        let mut left_out = if self.left_out.0 == width { self.left_out.1 } else { 0 };
        numbers.retain(|(rank, _)| *rank > left_out);
        while measure_text_width(&step_text) + total(&numbers) > width
            && let Some(min) = (0..numbers.len()).min_by_key(|&i| numbers[i].0).filter(|_| numbers.len() > 1)
        {
            left_out = numbers.remove(min).0;
        }
        self.left_out = (width, left_out);
        let core = metrics.iter().filter(|(name, _)| name.starts_with(CORE));
        let labelled = VALIDATION.iter().filter_map(|(name, label)| Some((*label, metrics.get(name)?)));
        let validated: Vec<String> =
            core.chain(labelled).map(|(name, value)| pair(name, bold.apply_to(four_digits(value)).to_string())).collect();
        let mut lines = Vec::new();
        if has_numbers {
            let numbers: String = numbers.into_iter().map(|(_, text)| text).collect();
            lines.push(format!("{step_text}{numbers}"));
        }
        let begin = measure_text_width(&step_text);
        let mut line = step_text;
        for part in validated {
            let room = measure_text_width(&line);
            if room > begin && room + measure_text_width(&part) > width {
                lines.push(std::mem::replace(&mut line, " ".repeat(begin)));
            }
            line += &part;
        }
        if measure_text_width(&line) > begin {
            lines.push(line);
        }
        lines
    }

    /// Returns true if the samples of a step are shown: samples of the first step, of each part of the run, and of the last step.
    fn is_due(&mut self, step: u64, table: &'static str) -> bool {
        let next = self.next_table.entry(table).or_insert(0);
        let (parts, min) = TABLES;
        let apart = self.total_steps.div_ceil(parts).max(min);
        let left = self.total_steps.saturating_sub(step);
        if left > 0 && (step < *next || left < apart / 2) {
            return false;
        }
        *next = step + apart;
        true
    }

    /// Returns the estimated time left, from the mean time per step so far.
    fn time_left(&self, step: u64) -> Option<String> {
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

    fn table(&mut self, step: u64, table: &StepTable) -> Result<()> {
        if !self.is_due(step, table.name) {
            return Ok(());
        }
        let width = Term::stdout().size_checked().map_or(WIDTH, |(_, columns)| usize::from(columns).clamp(40, WIDTH));
        self.progress.println(&samples::drawn(step, table, width))
    }

    fn finish(&mut self, _: &Ending) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_numbers_to_watch_and_a_validation_its_own() {
        console::set_colors_enabled(false);
        let session = TrackedRun { resumed_step: Some(2), ..TrackedRun::in_folder("local".into(), None) };
        let mut console = Console::new(&session);
        let values =
            [("actor/entropy", 1.23456), ("critic/score/mean", -0.5), ("actor/pg_loss", 3.0), ("val-core/a/acc/mean@1", 0.75)];
        let lines = console.lines(10, &values.into_iter().collect(), usize::MAX);
        assert_eq!(lines, ["step 10/10  reward -0.5000  entropy  1.235", "step 10/10  val-core/a/acc/mean@1 0.7500"]);
        let lines = console.lines(3, &[("train/loss", f64::NAN)].into_iter().collect(), usize::MAX);
        assert_eq!(lines, ["step  3/10  loss    nan  0s left"]);
        let values = [("val/loss", 0.5), ("val/rewards/accuracies", 0.75), ("val/rewards/margins", 0.25)];
        let lines = console.lines(3, &values.into_iter().collect(), 45);
        assert_eq!(lines, ["step  3/10  val loss 0.5000  accuracy 0.7500", "            margin 0.2500"].map(str::to_owned));

        let all = SHOWN
            .iter()
            .filter(|shown| !shown.metrics[0].starts_with("train/"))
            .map(|shown| (shown.metrics[0], 1234.5678))
            .collect();
        let full = &console.lines(3, &all, usize::MAX)[0];
        assert!(full.contains("tokens/s  1,235") && full.ends_with("  0s left"), "{full}");
        for (width, expected) in [
            (
                120,
                "step  3/10  reward    1235  kl   1235  entropy   1235  length   1235  truncated   1235  grad_norm   1235  0s left",
            ),
            (80, "step  3/10  reward    1235  kl   1235  entropy   1235  length   1235"),
            (40, "step  3/10  reward    1235  kl   1235"),
            (0, "step  3/10  reward    1235"),
        ] {
            assert_eq!(console.lines(3, &all, width), [expected], "{width} columns");
        }
        let short = || [("critic/score/mean", 1.0), ("actor/ppo_kl", 0.0)].into_iter().collect();
        assert_eq!(console.lines(3, &all, 60).len(), 1);
        assert_eq!(console.lines(4, &short(), 60), ["step  4/10  reward   1.000"], "what was left out stays out");
    }

    /// Numbers of one size have one width, and the lines of a run have their columns in one place.
    #[test]
    fn columns_stay_in_place_and_samples_are_few() {
        console::set_colors_enabled(false);
        let mut console = Console::new(&TrackedRun::in_folder("local".into(), None));
        let mut place = |step: u64, reward: f64| {
            let metrics = [("critic/score/mean", reward), ("actor/entropy", 2.5)].into_iter().collect();
            console.lines(step, &metrics, usize::MAX)[0].find("entropy")
        };
        let places: Vec<_> = [0.916, 0.8164, 1.0, 12.5, 0.0].iter().zip(1..).map(|(reward, step)| place(step, *reward)).collect();
        assert!(places.iter().all(|place| *place == places[0]), "{places:?}");
        let shown: Vec<u64> = (1..=10).filter(|step| console.is_due(*step, "completions")).collect();
        assert_eq!(shown, [1, 6, 10]);
    }
}
