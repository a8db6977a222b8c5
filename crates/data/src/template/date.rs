//! The date that a chat template may print. It is fixed per run, so prompts are the same the next day and after resuming.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, anyhow};

use burnish_util::strftime::{instant, strftime};
use burnish_util::time::begun;

const DAY: i64 = 86_400;

/// A fixed moment.
#[derive(Clone, Debug)]
pub struct TemplateDate {
    /// Seconds since the beginning of 1970, UTC.
    seconds: i64,
    printed: Arc<AtomicBool>,
}

impl TemplateDate {
    /// Returns the beginning of today, UTC.
    pub fn today() -> Self {
        Self::at(begun().0 / DAY * DAY)
    }

    fn at(seconds: i64) -> Self {
        Self { seconds, printed: Arc::default() }
    }

    /// Reads a date, or a date and a time, in ISO 8601: `2025-01-31`, `2025-01-31T18:30:00`.
    ///
    /// # Errors
    /// If the text is not a date.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || anyhow!("{text:?} is not a date: write it as 2025-01-31 or 2025-01-31T18:30:00");
        instant(text).map(Self::at).ok_or_else(wrong)
    }

    /// Returns the text that `strftime_now(format)` prints, or an error that names an unknown code.
    pub fn strftime(&self, format: &str) -> Result<String, String> {
        self.printed.store(true, Ordering::Relaxed);
        strftime(format, self.seconds, 0)
    }

    /// Returns true if a template has printed this date or a clone of it.
    pub fn was_printed(&self) -> bool {
        self.printed.load(Ordering::Relaxed)
    }
}

impl std::fmt::Display for TemplateDate {
    /// Writes the date in the form that [`TemplateDate::parse`] reads.
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        let format = if self.seconds % DAY == 0 { "%F" } else { "%FT%T" };
        out.write_str(&strftime(format, self.seconds, 0).map_err(|_| std::fmt::Error)?)
    }
}
