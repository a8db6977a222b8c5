//! Which rows of files are read, and what becomes of those that cannot be.

use anyhow::{Error, Result, bail};

use super::rows::Rows;
use burnish_util::rng::Stream;

/// The treatment of a row that cannot be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMalformed {
    /// It is an error.
    #[default]
    Error,
    /// It is left out, and counted.
    Skip,
}

/// A part of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Take {
    /// The number of rows.
    pub most: usize,
    /// True for a random choice of the rows, false for the first ones.
    pub shuffle: bool,
    pub seed: u64,
}

/// Which rows are read: all, or a part of them, whatever becomes of them afterwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowSelection {
    pub take: Option<Take>,
    pub on_malformed: OnMalformed,
}

impl Take {
    /// Returns the positions of the rows that are taken of so many, in their order; `None` for all.
    pub fn indices(&self, total: usize) -> Option<Vec<usize>> {
        if self.most >= total {
            return None;
        }
        let mut chosen: Vec<usize> = (0..total).collect();
        if self.shuffle {
            Stream::new(self.seed, "take-samples", &[]).shuffle(&mut chosen);
        }
        chosen.truncate(self.most);
        chosen.sort_unstable();
        Some(chosen)
    }
}

impl RowSelection {
    /// Returns the rows that are read.
    pub fn apply(&self, rows: Rows) -> Rows {
        match self.take.and_then(|take| take.indices(rows.len())) {
            Some(chosen) => rows.only(chosen),
            None => rows,
        }
    }
}

/// The rows that were left out because they cannot be read.
#[derive(Debug, Default)]
pub struct Malformed {
    pub count: usize,
    /// The error of the first, with its place.
    pub first: Option<String>,
}

impl Malformed {
    pub(crate) fn add(&mut self, error: &Error) {
        self.count += 1;
        self.first.get_or_insert_with(|| format!("{error:#}"));
    }

    /// Says what was left out of so many rows. `what` names them: "prompts".
    ///
    /// # Errors
    /// If that are more than half.
    pub fn tell(&self, what: &str, total: usize) -> Result<()> {
        let Some(first) = &self.first else { return Ok(()) };
        let (count, first) = (self.count, format!("the first: {first}"));
        if 2 * count > total {
            bail!(
                "{count} of {total} {what} would be left out as malformed, more than half (data.on_malformed_row=skip); {first}"
            );
        }
        tracing::warn!("left out {count} of {total} {what}: they are malformed (data.on_malformed_row=skip); {first}");
        Ok(())
    }
}

/// An error that a setting of its own decides about, such as a row of too many tokens. [`OnMalformed::Skip`] does not leave it
/// out.
#[derive(Debug)]
pub struct TooLongError(pub String);

impl std::fmt::Display for TooLongError {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TooLongError {}
