//! Selects rows for training from scored responses: the best per prompt, pairs of the best and worst, those above a threshold.
//!
//! `scored` reads the output of `trainer generate` and `trainer eval`, or OpenRLHF's rows. `kinds` is the table of row kinds
//! (`entry`); `preferences` and `conditional` implement some of them, with helpers in `row`. `write` writes JSON lines or
//! parquet.

mod conditional;
mod entry;
mod kinds;
mod preferences;
mod row;
mod scored;
mod write;

pub use entry::{RowKind, SelectOptions, SelectedRows};
pub use kinds::{KINDS, find};
pub use scored::{ScoredConversation, ScoredResponse, ScoredResponses, SelectColumns};
pub use write::write_objects;
