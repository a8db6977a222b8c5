//! The names of numbers that rewards report, where a setting asks for one by name.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::trainer::batch::Batch;

/// The names that a setting asks for and that some response has had.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReportedNames(BTreeSet<String>);

impl ReportedNames {
    /// The number of this name of each trajectory, which `key` asks for. A batch in which no response happens to have it, though
    /// others had, gives none.
    ///
    /// # Errors
    /// A name that no reward has reported so far.
    pub fn number(&mut self, batch: &Batch, name: &str, key: &str) -> Result<Vec<Option<f64>>> {
        match batch.number(name) {
            Some(values) => {
                self.0.insert(name.to_owned());
                Ok(values)
            }
            None if self.0.contains(name) || !batch.scored.contains(&true) => Ok(vec![None; batch.len()]),
            None => bail!("{key} names `{name}`, which no reward reports; there is {}", batch.number_names().join(", ")),
        }
    }
}
