//! How far a download is: a bar on a terminal, a line a minute elsewhere.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use burnish_util::terminal;

const EVERY: Duration = Duration::from_secs(60);

/// How far a download is.
pub struct Bar {
    bar: ProgressBar,
    shown: bool,
    total: u64,
    done: u64,
    said: Instant,
}

impl Bar {
    /// Begins a download of so many bytes; `wanted` is false if no bar may be shown.
    pub fn begin(total: u64, wanted: bool) -> Self {
        let shown = wanted && terminal::has_bar();
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(total), target);
        let template = "{msg} {wide_bar} {decimal_bytes}/{decimal_total_bytes}  {decimal_bytes_per_sec}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { bar, shown, total, done: 0, said: Instant::now() }
    }

    /// Names the file that is downloaded.
    pub fn file(&self, name: &str) {
        self.bar.set_message(name.to_owned());
    }

    /// Moves on by so many bytes.
    pub fn add(&mut self, bytes: u64) {
        self.done += bytes;
        self.bar.set_position(self.done);
        if !self.shown && self.said.elapsed() >= EVERY {
            self.said = Instant::now();
            tracing::info!("{} of {} are there", size(self.done), size(self.total));
        }
    }

    /// Moves back by so many bytes, which were no good.
    pub fn take(&mut self, bytes: u64) {
        self.done = self.done.saturating_sub(bytes);
        self.bar.set_position(self.done);
    }

    /// Writes lines above the bar.
    pub fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A number of bytes in words, with the decimal units of the Hub's pages.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.2} GB", bytes as f64 / 1e9),
    }
}
