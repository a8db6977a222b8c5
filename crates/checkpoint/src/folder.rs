//! verl's names of checkpoints and of the files next to them.

use std::path::Path;

use anyhow::{Result, bail};

/// File that holds the step of the last checkpoint; the name is verl's.
pub const TRACKER_FILE: &str = "latest_checkpointed_iteration.txt";
/// File that holds the step of the best checkpoint.
pub const BEST_FILE: &str = "best_checkpointed_iteration.txt";
/// File that lists the steps of the best checkpoints by earlier metrics, one a line. They are never deleted.
pub const KEPT_FILE: &str = "kept_checkpointed_iterations.txt";
/// Prefix of a checkpoint's name.
pub(super) const STEP_PREFIX: &str = "global_step_";

/// Returns the step of a checkpoint path, whose last component must be `global_step_<N>`.
pub fn step_of(path: &Path) -> Result<u64> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match name.strip_prefix(STEP_PREFIX).and_then(|step| step.parse().ok()) {
        Some(step) => Ok(step),
        None => bail!("'{}' is not a checkpoint: its last component must be {STEP_PREFIX}<N>", path.display()),
    }
}
