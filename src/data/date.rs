//! The date that a chat template may write, which belongs to a run: the same prompts today and tomorrow, and after a resume.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, anyhow};

use crate::util::strftime::{instant, strftime};
use crate::util::time::unix_time;

const DAY: i64 = 86_400;

/// A moment that stands still.
#[derive(Clone, Debug)]
pub struct TemplateDate {
    /// Since the beginning of 1970, UTC.
    seconds: i64,
    asked: Arc<AtomicBool>,
}

impl TemplateDate {
    /// The beginning of today, UTC.
    pub fn today() -> Self {
        Self::at(unix_time() as i64 / DAY * DAY)
    }

    fn at(seconds: i64) -> Self {
        Self { seconds, asked: Arc::default() }
    }

    /// At a date, or a date and a time, as ISO 8601 writes them: `2025-01-31`, `2025-01-31T18:30:00`.
    ///
    /// # Errors
    /// Another text.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || anyhow!("{text:?} is no date: write it as 2025-01-31 or 2025-01-31T18:30:00");
        instant(text).map(Self::at).ok_or_else(wrong)
    }

    /// What `strftime_now(format)` prints. An unknown code is the error.
    pub fn strftime(&self, format: &str) -> Result<String, String> {
        self.asked.store(true, Ordering::Relaxed);
        strftime(format, self.seconds, 0)
    }

    /// Whether a template has asked for it, or for that of a clone.
    pub fn was_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}

impl std::fmt::Display for TemplateDate {
    /// As [`TemplateDate::parse`] reads it.
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        let format = if self.seconds % DAY == 0 { "%F" } else { "%FT%T" };
        out.write_str(&strftime(format, self.seconds, 0).map_err(|_| std::fmt::Error)?)
    }
}
