//! The names of numbers that rewards report, where a setting asks for one by name.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::trainer::batch::Batch;

/// The names of the numbers that some response of the run has had.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReportedNames(BTreeSet<String>);

impl ReportedNames {
    /// Learns the names of a batch that has just been scored.
    pub fn learn(&mut self, batch: &Batch) {
        self.0.extend(batch.number_names().into_iter().map(str::to_owned));
    }

    /// The number of this name of each trajectory, which `key` asks for. A batch in which no response happens to have it, though
    /// others had, gives none.
    ///
    /// # Errors
    /// A name that no reward has reported so far.
    pub fn number(&self, batch: &Batch, name: &str, key: &str) -> Result<Vec<Option<f64>>> {
        match batch.number(name) {
            Some(values) => Ok(values),
            None if self.0.contains(name) || !batch.scored().contains(&true) => Ok(vec![None; batch.len()]),
            None => bail!("{key} names `{name}`, which no reward reports; there is {}", batch.number_names().join(", ")),
        }
    }
}
