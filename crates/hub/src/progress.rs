//! The progress of a download: a bar on a terminal, otherwise one log line a minute.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use burnish_util::terminal;

const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// The progress of a download.
pub(crate) struct DownloadProgress {
    bar: ProgressBar,
    shown: bool,
    total: u64,
    done: u64,
    logged: Instant,
}

impl DownloadProgress {
    /// Starts at 0 of `total` bytes. Shows a bar if `is_needed` and if stderr is a terminal.
    pub(crate) fn new(total: u64, is_needed: bool) -> Self {
        let shown = is_needed && terminal::has_bar();
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(total), target);
        let template = "{msg} {wide_bar} {decimal_bytes}/{decimal_total_bytes}  {decimal_bytes_per_sec}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { bar, shown, total, done: 0, logged: Instant::now() }
    }

    /// Shows the name of the current file.
    pub(crate) fn file(&self, name: &str) {
        self.bar.set_message(name.to_owned());
    }

    /// Adds received bytes.
    pub(crate) fn add(&mut self, bytes: u64) {
        self.done += bytes;
        self.bar.set_position(self.done);
        if !self.shown && self.logged.elapsed() >= LOG_INTERVAL {
            self.logged = Instant::now();
            tracing::info!("{} of {} downloaded", size(self.done), size(self.total));
        }
    }

    /// Subtracts bytes that must be downloaded again.
    pub(crate) fn subtract(&mut self, bytes: u64) {
        self.done = self.done.saturating_sub(bytes);
        self.bar.set_position(self.done);
    }

    /// Runs `write`, whose lines appear above the bar.
    pub(crate) fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }
}

impl Drop for DownloadProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Formats a number of bytes with decimal units, as the Hub's pages do.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.2} GB", bytes as f64 / 1e9),
    }
}
