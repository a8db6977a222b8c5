//! verl's `utils/reward_score/sandbox_fusion`: a Sandbox Fusion service runs programs against test cases, and the score is the
//! share of the first ten cases that they pass.
//!
//! Programs never run in this process; verl runs them itself if there is no service. Two things differ from verl on purpose. A
//! case on which the service gives no verdict is a [`Failure`](super::failure::Failure), not a failed case. And cases after the tenth, which do not affect
//! the score, are not run.

mod cases;
mod client;
mod program;
mod scorer;
mod service;
#[cfg(test)]
mod tests;
mod verdict;

pub use self::scorer::{check, score};
pub use self::service::{Sandbox, SandboxOptions};
pub use self::verdict::{Verdict, of as verdict};
