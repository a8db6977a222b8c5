//! The answers of tools and the ended conversations since the last checkpoint, so that a resumed run does not ask again.
//!
//! A conversation that has ended is kept whole: it is not led again. Of one that has not ended, the answers of tools outside this
//! process are kept: it is sampled again, with the same tokens, and its calls get these answers. What has a state in a process of
//! its own, an environment or a user in Python, cannot go on from answers: such a conversation begins again.

mod entry;
mod file;
mod recorder;
mod toolbox;

pub use entry::Base;
pub use recorder::{Recorder, Recording};
pub use toolbox::RecordedTools;
