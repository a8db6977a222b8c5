//! What was read, and what was left out of it or deserves a word: by reason, with the first rows.

use std::collections::BTreeMap;

use anyhow::{Result, bail};

use super::place::RowPlace;
use crate::files::row_selection::Malformed;

/// The number of rows that a message names.
const NAMED: usize = 3;

/// Rows that were read.
#[derive(Debug)]
pub struct ReadRows<T> {
    pub kept: Vec<T>,
    pub tally: Tally,
}

/// Counts of rows by what happened to them.
#[derive(Debug, Default)]
pub struct Tally {
    /// The number of rows that were read.
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

/// One row: what it became, or why it was left out, and what is to be said of it.
pub(super) struct RowOutcome<T> {
    pub result: Result<T, &'static str>,
    pub notes: Vec<&'static str>,
    pub row: RowPlace,
}

impl<T> ReadRows<T> {
    pub(super) fn of(outcomes: Vec<RowOutcome<T>>, malformed: Malformed) -> Self {
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

    /// Returns what was kept, and warns of what was not. `what` names the rows: "pairs".
    ///
    /// # Errors
    /// If there is nothing, or more than half of the rows were left out.
    pub fn checked(self, what: &str) -> Result<Vec<T>> {
        self.tally.check(what)?;
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
    /// Returns the number of rows that were left out for `reason`, or for all reasons.
    pub fn left_out(&self, reason: Option<&str>) -> usize {
        let counted = self.left_out.iter().filter(|(known, _)| reason.is_none_or(|reason| reason == **known));
        counted.map(|(_, c)| c.count).sum::<usize>() + if reason.is_none() { self.malformed.count } else { 0 }
    }

    /// What was left out, and why, in words; `None` if nothing was.
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

    fn check(&self, what: &str) -> Result<()> {
        for (note, counted) in &self.noted {
            tracing::warn!("of {} {what}, {}", self.rows, counted.describe(note));
        }
        let (rows, left_out) = (self.rows, self.left_out(None));
        if rows == 0 {
            bail!("no rows");
        }
        let Some(reasons) = self.describe() else { return Ok(()) };
        if 2 * left_out > rows {
            // Not every reason is the length.
            let longer = if reasons.contains("data.max_length") { "raise data.max_length, or " } else { "" };
            bail!(
                "{left_out} of {rows} {what} would be left out, more than half: {reasons}; {longer}take such rows out of the files"
            );
        }
        tracing::warn!("left out {left_out} of {rows} {what}: {reasons}");
        Ok(())
    }
}
