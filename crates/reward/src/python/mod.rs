//! Reward functions in the user's Python files, which need no changes: each function is called in the style it was written for
//! (verl, TRL or OpenRLHF).
//!
//! They run in separate processes ([`Pool`]), because user code can hang, leak memory or crash, and a thread cannot be stopped. A
//! request and its reply are one line of JSON each. Columns of floats follow it if a function sees a whole batch
//! ([`PythonEstimator`]). Output of the code goes to the log. A worker that takes too long is killed with all of its children,
//! and the next call starts another. The result does not depend on the worker that gets a response, unless the file keeps state
//! between calls.

mod calls;
mod estimator;
mod options;
mod policy_loss;
mod pool;
mod post_processing;
mod questions;

pub use calls::functions;
pub use estimator::{PythonColumn, PythonEstimator};
pub use options::{CodeSource, PoolOptions, Signature, Style};
pub use policy_loss::{GlobalBatchInfo, PolicyLossColumns, PolicyLossValue, PythonPolicyLoss};
pub use pool::Pool;
pub use post_processing::{Processed, PythonPostProcessing, ScoredBatch};
