//! The progress bar. It is shown only if standard error is a terminal, and lines printed above never tear it.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use burnish_util::number::with_commas;
use burnish_util::terminal;
use burnish_util::time::human;
use burnish_util::wrap::wrapped;

/// A handle to the run's one bar; clones share it. The bar exists, hidden, before its length is known, so that logging that is
/// set up at the very start can already write above it.
#[derive(Clone, Debug)]
pub struct Progress {
    bar: ProgressBar,
}

/// Labels that the bar shows for the phases of a step; other phases are shown by name.
const PHASES: &[(&str, &str)] = &[
    ("gen", "generate"),
    ("gen_max", "generate greedily"),
    ("reward", "score"),
    ("old_log_prob", "log-probs"),
    ("ref", "reference"),
    ("adv", "advantages"),
    ("update_critic", "update critic"),
    ("update_actor", "update"),
    ("testing", "validate"),
    ("save_checkpoint", "save"),
];

impl Progress {
    /// Creates a hidden bar; [`start`](Self::start) shows it.
    pub fn hidden() -> Self {
        Self { bar: ProgressBar::hidden() }
    }

    /// Shows the bar at `done` of `total` steps, if standard error is a terminal whose lines can be overwritten.
    pub fn start(&self, done: u64, total: u64) {
        if !terminal::has_bar() {
            return;
        }
        // Set before the style, which takes its colours from the draw target.
        self.bar.set_draw_target(ProgressDrawTarget::stderr());
        let template = "{prefix:13.cyan} {wide_bar} {pos}/{len} steps  {msg}  {worked}, {left} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            // Times have the same form as in the lines above the bar.
            let worked = |state: &ProgressState, out: &mut dyn fmt::Write| _ = out.write_str(&human(state.elapsed()));
            let left = |state: &ProgressState, out: &mut dyn fmt::Write| _ = out.write_str(&human(state.eta()));
            self.bar.set_style(style.with_key("worked", worked).with_key("left", left));
        }
        self.bar.set_length(total);
        self.bar.set_position(done);
        // Steps done by an earlier process must not affect this process's estimate.
        self.bar.reset_eta();
    }

    /// Counts the time that earlier processes of the run took as elapsed time.
    pub fn worked(&self, before: Duration) {
        if Instant::now().checked_sub(before).is_some() {
            _ = self.bar.clone().with_elapsed(before);
        }
    }

    /// Shows the current phase of a step.
    pub fn phase(&self, phase: &'static str) {
        if !self.bar.is_hidden() {
            self.bar.set_prefix(PHASES.iter().find(|(name, _)| *name == phase).map_or(phase, |(_, shown)| shown));
        }
    }

    /// Moves to `done` steps and shows a named number next to the speed.
    pub fn update(&self, done: u64, (name, value): (&str, f64), tokens_per_second: f64) {
        self.bar.set_message(format!("{name} {value:.3}  {} tokens/s", with_commas(tokens_per_second)));
        self.bar.set_position(done);
    }

    /// Shows the progress of a generation, until the next [`update`](Self::update).
    pub fn generating(&self, finished: usize, total: usize, tokens: usize) {
        if !self.bar.is_hidden() {
            self.bar.set_message(format!("{finished}/{total} responses, {tokens} tokens"));
        }
    }

    /// Removes the bar from the screen.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Prints a line on standard output, above the bar. It may contain colours; its other parts must be printable.
    pub fn println(&self, line: &str) -> Result<()> {
        self.bar.suspend(|| terminal::print_styled(&format!("{line}\n"))).context("cannot write to standard output")
    }

    /// Returns a writer to standard error that hides the bar during every write, for `tracing_subscriber`:
    /// `fmt().with_writer(move || progress.stderr())`.
    pub fn stderr(&self) -> AboveBar {
        AboveBar { bar: self.bar.clone() }
    }
}

/// Writer that [`Progress::stderr`] returns.
#[derive(Debug)]
pub struct AboveBar {
    bar: ProgressBar,
}

impl Write for AboveBar {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        // In a file or a pipe, each message stays on one line.
        let text = match Term::stderr().size_checked().filter(|_| io::stderr().is_terminal()) {
            Some((_, columns)) => wrapped(&text, columns.into()).into(),
            None => text,
        };
        self.bar.suspend(|| terminal::say_styled(&text));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
