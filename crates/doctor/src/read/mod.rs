//! Evidence from what a run left behind: burnish's folder, a file of metrics, or the folder of another library.

mod burnish;
mod lenient;
mod lines;
mod reader;
mod trl;
mod trl_files;
mod wandb;
mod wandb_log;

use std::path::Path;

use anyhow::{Result, bail};

use crate::evidence::Evidence;
use reader::RecordReader;

/// The readers of all forms, the most special first.
static READERS: &[RecordReader] = &[burnish::read, trl::read, wandb::read, lines::read];

/// Reads the record of a run: a folder or a file.
///
/// # Errors
/// If the path has no known form, or a file of it cannot be read. The message lists the forms.
pub fn read(path: &Path) -> Result<Evidence> {
    for reader in READERS {
        if let Some(evidence) = reader(path)? {
            return Ok(evidence);
        }
    }
    bail!(
        "{} is not the record of a run. It may be: a folder with metrics.jsonl (burnish), a folder or file trainer_state.json (TRL), \
         lines of {{\"step\", \"data\"}} (verl's file logger), or a folder of W&B with run-ID.wandb; for a run that has not \
         started, name its configuration: trainer doctor FILE.yaml",
        path.display()
    )
}
