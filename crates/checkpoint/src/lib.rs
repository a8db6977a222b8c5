//! Checkpoints on disk, in verl's layout: the layout of their directory, the choice of the one to resume from, and the deletion
//! of old ones.
//!
//! ```text
//! <dir>/global_step_20/{manifest.json, actor/…, data.json, …}   complete, or absent
//! <dir>/best_checkpointed_iteration.txt                         "10", the best by trainer.metric_for_best_model
//! <dir>/kept_checkpointed_iterations.txt                        "5", best ones by earlier metrics, never deleted
//! <dir>/latest_checkpointed_iteration.txt                       "20", written once the directory is in place
//! <dir>/.lock                                                   held by the process that trains here
//! ```
//!
//! The caller determines the contents of a checkpoint: [`Checkpoints::save`] hands it an empty directory.

mod best;
mod changes;
mod checkpoints;
mod folder;
mod kept_best;
mod manifest;
mod resume;
mod resume_effects;
mod sources;

pub use best::Best;
pub use changes::{CONFIG_FILE, Changes, RunFacts, check_changes, effective_crc};
pub use checkpoints::{CheckpointEntry, Checkpoints, best, refuse_inside, verify, verify_part, verify_sizes};
pub use folder::{BEST_FILE, KEPT_FILE, TRACKER_FILE, step_of};
pub use manifest::{FileEntry, Manifest};
pub use resume::ResumeMode;
pub use resume_effects::{CheckpointPart, KL_COEF, changes_the_run};
pub use sources::Sources;
