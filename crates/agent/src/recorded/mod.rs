//! Tool results and finished conversations since the last checkpoint, so that a resumed run need not repeat them.
//!
//! A finished conversation is stored whole and not repeated. For an unfinished one, the results of tools outside this process are
//! stored. The conversation is sampled again, with the same tokens, and its calls get these results. Environments and users in
//! Python processes keep state that results cannot restore: their conversations start again.

mod entry;
mod file;
mod recorder;
mod toolbox;

pub use entry::RecordBase;
pub use recorder::{Recorder, RecordingOptions};
pub use toolbox::RecordedTools;
