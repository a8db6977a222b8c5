//! Rewards that fail: what kind of failure it was, for those who decide what becomes of it and for those who count.

use std::fmt;

/// How a reward function failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// It reported an error, or returned what is no reward.
    Exception,
    /// It took too long.
    Timeout,
    /// What runs it died, or cannot be reached.
    Crash,
}

/// The root of the error of a reward function that failed.
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
