//! The choice of rows to read, and the treatment of malformed ones.

use anyhow::{Error, Result, bail};

use super::rows::FileRows;
use burnish_util::rng::Stream;

/// The treatment of a malformed row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMalformed {
    /// The row is an error.
    #[default]
    Error,
    /// The row is skipped and counted.
    Skip,
}

/// A part of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Take {
    /// Number of rows.
    pub max: usize,
    /// True for random rows, false for the first ones.
    pub shuffle: bool,
    pub seed: u64,
}

/// The rows to read (all or a part), before any filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowSelection {
    pub take: Option<Take>,
    pub on_malformed: OnMalformed,
}

impl Take {
    /// Returns the positions of the chosen rows among `total`, ascending; `None` for all.
    pub fn indices(&self, total: usize) -> Option<Vec<usize>> {
        if self.max >= total {
            return None;
        }
        let mut chosen: Vec<usize> = (0..total).collect();
        if self.shuffle {
            Stream::new(self.seed, "take-samples", &[]).shuffle(&mut chosen);
        }
        chosen.truncate(self.max);
        chosen.sort_unstable();
        Some(chosen)
    }
}

impl RowSelection {
    /// Returns the chosen rows.
    pub fn apply(&self, rows: FileRows) -> FileRows {
        match self.take.and_then(|take| take.indices(rows.len())) {
            Some(chosen) => rows.only(chosen),
            None => rows,
        }
    }
}

/// Rows that were skipped because they are malformed.
#[derive(Debug, Default)]
pub struct Malformed {
    pub count: usize,
    /// Error of the first one, with its place.
    pub first: Option<String>,
}

impl Malformed {
    pub(crate) fn add(&mut self, error: &Error) {
        self.count += 1;
        self.first.get_or_insert_with(|| format!("{error:#}"));
    }

    /// Warns about skipped rows among `total`. `noun` is the noun for rows, such as "prompts".
    ///
    /// # Errors
    /// If more than half were skipped.
    pub fn report(&self, noun: &str, total: usize) -> Result<()> {
        let Some(first) = &self.first else { return Ok(()) };
        let (count, first) = (self.count, format!("the first: {first}"));
        if 2 * count > total {
            bail!(
                "{count} of {total} {noun} would be skipped as malformed, more than half (data.on_malformed_row=skip); {first}"
            );
        }
        tracing::warn!("skipped {count} of {total} {noun}: they are malformed (data.on_malformed_row=skip); {first}");
        Ok(())
    }
}

/// The error of a row with too many tokens, which another setting decides about. [`OnMalformed::Skip`] does not skip it.
#[derive(Debug)]
pub(crate) struct TooLongError(pub String);

impl std::fmt::Display for TooLongError {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TooLongError {}
