//! verl's `utils/reward_score/sandbox_fusion`: a Sandbox Fusion service runs programs against test cases. The score is the share
//! of the first ten cases that they pass.
//!
//! Programs never run in this process; verl runs them itself if there is no service. Two things differ from verl on purpose. A
//! case without a verdict from the service is a [`RewardError`](super::reward_error::RewardError), not a failed case. Cases after
//! the tenth do not affect the score and are not run.

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
pub use self::verdict::{CaseVerdict, from_reply as verdict};
