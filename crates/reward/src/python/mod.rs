//! Reward functions in the user's Python files, which need no changes: each is called in the style it was written for (verl, TRL
//! or OpenRLHF).
//!
//! They run in separate processes ([`Pool`]), because user code can hang, leak memory or crash, and a thread that does cannot be
//! stopped. A request and its reply are one line of JSON each, with columns of numbers behind it where a function sees a whole batch
//! ([`PythonEstimator`]); output of the code goes to the log. A worker that takes too long
//! is killed with all of its children, and the next call starts another. It makes no difference which worker gets which response,
//! unless the file keeps state between calls.

mod calls;
mod estimator;
mod options;
mod pool;
mod post_processing;

pub use calls::functions;
pub use estimator::{PythonColumn, PythonEstimator};
pub use options::{PoolOptions, Signature, Source, Style};
pub use pool::Pool;
pub use post_processing::{Processed, PythonPostProcessing, ScoredResponses};
