//! Counts of read, skipped and noted rows, by reason, with the first rows of each.

use std::collections::BTreeMap;

use anyhow::{Result, bail};

use super::place::RowPlace;
use crate::files::row_selection::Malformed;

/// Target of the events about rows that are shortened or left out, for listeners.
pub const CHANGED_ROWS: &str = "burnish::changed_rows";

/// Number of rows that a message names.
const NAMED: usize = 3;

/// The rows that were kept, and the counts of all.
#[derive(Debug)]
pub struct ReadRows<T> {
    pub kept: Vec<T>,
    pub tally: Tally,
}

/// Counts of rows by outcome.
#[derive(Debug, Default)]
pub struct Tally {
    /// Number of rows that were read.
    pub rows: usize,
    malformed: Malformed,
    left_out: BTreeMap<&'static str, RowCount>,
    noted: BTreeMap<&'static str, RowCount>,
}

#[derive(Debug, Default)]
struct RowCount {
    count: usize,
    first: Vec<RowPlace>,
}

/// One row: its result or the reason for skipping it, and notes for warnings.
pub(super) struct RowOutcome<T> {
    pub result: Result<T, &'static str>,
    pub notes: Vec<&'static str>,
    pub row: RowPlace,
}

impl<T> ReadRows<T> {
    pub(super) fn from_outcomes(outcomes: Vec<RowOutcome<T>>, malformed: Malformed) -> Self {
        let mut tally = Tally { rows: outcomes.len() + malformed.count, malformed, ..Tally::default() };
        let mut kept = Vec::with_capacity(outcomes.len());
        for RowOutcome { result, notes, row } in outcomes {
            for note in notes {
                tally.noted.entry(note).or_default().add(&row);
            }
            match result {
                Ok(example) => kept.push(example),
                Err(reason) => tally.left_out.entry(reason).or_default().add(&row),
            }
        }
        Self { kept, tally }
    }

    /// Returns the kept rows, and warns about the others. `noun` is the noun for rows, such as "pairs".
    ///
    /// # Errors
    /// If there are no rows, or more than half were skipped.
    pub fn checked(self, noun: &str) -> Result<Vec<T>> {
        self.tally.check(noun)?;
        Ok(self.kept)
    }
}

impl RowCount {
    fn add(&mut self, row: &RowPlace) {
        self.count += 1;
        if self.first.len() < NAMED && !self.first.contains(row) {
            self.first.push(row.clone());
        }
    }

    fn describe(&self, reason: &str) -> String {
        let mut rows: Vec<String> = self.first.iter().map(RowPlace::to_string).collect();
        if self.count > rows.len() {
            rows.push("…".to_owned());
        }
        format!("{} {reason} ({})", self.count, rows.join("; "))
    }
}

impl Tally {
    /// Returns the number of rows that were skipped for `reason`, or for any reason.
    pub fn left_out(&self, reason: Option<&str>) -> usize {
        let counted = self.left_out.iter().filter(|(known, _)| reason.is_none_or(|reason| reason == **known));
        counted.map(|(_, c)| c.count).sum::<usize>() + if reason.is_none() { self.malformed.count } else { 0 }
    }

    /// Describes the skipped rows with reasons; `None` if no row was skipped.
    pub fn describe(&self) -> Option<String> {
        let mut reasons: Vec<String> = self.left_out.iter().map(|(reason, counted)| counted.describe(reason)).collect();
        reasons.extend(
            self.malformed
                .first
                .as_ref()
                .map(|first| format!("{} are malformed (data.on_malformed_row=skip; the first: {first})", self.malformed.count)),
        );
        (!reasons.is_empty()).then(|| reasons.join(", "))
    }

    /// Tells listeners about rows that are left out, and about notes.
    fn tell(&self) {
        let outcomes = [(&self.left_out, true), (&self.noted, false)];
        for (counts, left_out) in outcomes {
            for (reason, counted) in counts {
                let first = counted.first.first().map(RowPlace::to_string).unwrap_or_default();
                tracing::debug!(target: CHANGED_ROWS, reason, count = counted.count, all = self.rows, first, left_out);
            }
        }
    }

    fn check(&self, noun: &str) -> Result<()> {
        self.tell();
        for (note, counted) in &self.noted {
            tracing::warn!("of {} {noun}, {}", self.rows, counted.describe(note));
        }
        let (rows, left_out) = (self.rows, self.left_out(None));
        if rows == 0 {
            bail!("no rows");
        }
        let Some(reasons) = self.describe() else { return Ok(()) };
        if 2 * left_out > rows {
            // Length is not always a reason.
            let longer = if reasons.contains("data.max_length") { "raise data.max_length, or " } else { "" };
            bail!(
                "{left_out} of {rows} {noun} would be skipped, more than half: {reasons}; {longer}remove such rows from the files"
            );
        }
        tracing::warn!("skipped {left_out} of {rows} {noun}: {reasons}");
        Ok(())
    }
}
