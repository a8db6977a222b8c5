//! Checkpoints on disk, in verl's layout: the layout of their directory, the choice of the one to resume from, the deletion of
//! old ones.
//!
//! ```text
//! <dir>/global_step_20/{manifest.json, actor/…, data.json, …}   whole, or not there
//! <dir>/best_checkpointed_iteration.txt                         "10", the best one by a metric, where one is followed
//! <dir>/kept_checkpointed_iterations.txt                        "5", best ones by earlier measures, which stay
//! <dir>/latest_checkpointed_iteration.txt                       "20", written once the directory is in place
//! <dir>/.lock                                                   held by the process that trains here
//! ```
//!
//! The caller decides what a checkpoint contains: [`Checkpoints::save`] hands it an empty directory.

mod best;
mod changes;
mod checkpoints;
mod fates;
mod folder;
mod kept;
mod manifest;
mod resume;
mod sources;

pub use best::Best;
pub use changes::{CONFIG_FILE, Changes, Compared, check_changes, effective_crc};
pub use checkpoints::{Checkpoints, Listed, best, inside, refuse_inside, verify};
pub use fates::{CheckpointPart, KL_COEF};
pub use folder::{BEST_FILE, KEPT_FILE, TRACKER_FILE, step_of};
pub use manifest::{FileEntry, Manifest};
pub use resume::ResumeMode;
pub use sources::Sources;
