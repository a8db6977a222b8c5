//! Makes rows for training out of scored responses: the best of a prompt, pairs of its best and worst, those above a threshold.
//!
//! `scored` reads what `trainer generate` and `trainer eval` write, or OpenRLHF's rows; `kinds` is the table of what can be made
//! of them (`entry`), with `preferences` and `conditional` beside it and the parts of a row in `row`; `write` writes the rows as
//! JSON lines or parquet.

mod conditional;
mod entry;
mod kinds;
mod preferences;
mod row;
mod scored;
mod write;

pub use entry::{RowKind, SelectOptions, SelectedRows};
pub use kinds::{KINDS, find};
pub use scored::{Conversation, ScoredResponse, ScoredResponses, SelectColumns};
pub use write::write_objects;
