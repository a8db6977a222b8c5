//! Failures of reward functions, by kind, for the policy on errors and for the statistics.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The way in which a reward function failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureKind {
    /// The function raised an error, or returned something that is no reward.
    Exception,
    /// The function took too long.
    Timeout,
    /// The process that runs the function died, or its service cannot be reached.
    Crash,
}

/// A failed reward function, as the root cause of an error.
#[derive(Debug)]
pub struct Failure {
    pub kind: FailureKind,
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}
