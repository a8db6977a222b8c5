//! Errors of reward functions, with a kind that `reward.on_error` and the statistics use.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The kind of a reward function's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RewardFailure {
    /// The function raised an error, or returned something that is not a reward.
    Exception,
    /// The function took too long.
    Timeout,
    /// The process that runs the function died, or its service cannot be reached.
    Crash,
}

/// The error of a reward function, as the root cause of an [`anyhow::Error`].
#[derive(Debug)]
pub struct RewardError {
    pub kind: RewardFailure,
    pub message: String,
}

impl fmt::Display for RewardError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for RewardError {}
