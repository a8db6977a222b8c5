//! The names of values that rewards report, for settings that name one.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::trainer::batch::Batch;

/// Names of values that some response of the run has had.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReportedNames(BTreeSet<String>);

impl ReportedNames {
    /// Adds the names of a batch that has just been scored.
    pub fn learn(&mut self, batch: &Batch) {
        self.0.extend(batch.number_names().into_iter().map(str::to_owned));
    }

    /// Returns the value of this name for each trajectory. `key`: the setting that names it. If no response of this batch has the
    /// value, but earlier ones had, returns `None` for each.
    ///
    /// # Errors
    /// If no reward has reported the name so far.
    pub fn number(&self, batch: &Batch, name: &str, key: &str) -> Result<Vec<Option<f64>>> {
        match batch.number(name) {
            Some(values) => Ok(values),
            None if self.0.contains(name) || !batch.scored().contains(&true) => Ok(vec![None; batch.len()]),
            None => bail!("{key} names `{name}`, which no reward reports; rewards report {}", batch.number_names().join(", ")),
        }
    }
}
