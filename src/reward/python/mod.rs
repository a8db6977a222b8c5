//! Reward functions in Python files of the user's, unchanged, each called in the way it was written for: verl's, TRL's, OpenRLHF's.
//!
//! They run in processes of their own ([`Pool`]), because user code hangs, leaks and dies, and no thread can be stopped that does.
//! One JSON line goes to a worker and one comes back; what the code prints goes to the log. A worker that takes too long is killed
//! with everything it has started, and the next call starts another. Which worker gets which response makes no difference, unless
//! the file keeps state between calls.

mod calls;
mod environment;
mod options;
mod pool;
mod printed;
mod process;

pub use calls::functions;
pub use options::{PoolOptions, Signature, Source, Style};
pub use pool::Pool;
