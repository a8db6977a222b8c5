//! Statistics of reward functions: call times and failure counts.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::reward_error::RewardFailure;

/// Statistics since the last report. Scoring threads fill them, and a report empties them.
#[derive(Debug, Default)]
pub struct Stats(Mutex<CallCounts>);

/// Counts since the last report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallCounts {
    /// Times of all calls, by function, in no particular order.
    pub calls: Vec<(String, Vec<Duration>)>,
    pub exceptions: usize,
    pub timeouts: usize,
    pub crashes: usize,
}

impl CallCounts {
    /// Adds the counts of another process.
    pub fn add(&mut self, other: Self) {
        let Self { calls, exceptions, timeouts, crashes } = other;
        for (function, times) in calls {
            match self.calls.iter_mut().find(|(known, _)| *known == function) {
                Some((_, known)) => known.extend(times),
                None => self.calls.push((function, times)),
            }
        }
        self.exceptions += exceptions;
        self.timeouts += timeouts;
        self.crashes += crashes;
    }
}

impl Stats {
    /// Times a call of this function.
    pub fn time<T>(&self, function: &str, call: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let value = call();
        let took = start.elapsed();
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match counts.calls.iter_mut().find(|(known, _)| known == function) {
            Some((_, calls)) => calls.push(took),
            None => counts.calls.push((function.to_owned(), vec![took])),
        }
        value
    }

    /// Counts a failure. A failure without a kind is an error of a built-in scorer, and counts as an exception.
    pub fn failed(&self, kind: Option<RewardFailure>) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match kind {
            None | Some(RewardFailure::Exception) => counts.exceptions += 1,
            Some(RewardFailure::Timeout) => counts.timeouts += 1,
            Some(RewardFailure::Crash) => counts.crashes += 1,
        }
    }

    /// Returns the statistics and resets them.
    pub fn take(&self) -> CallCounts {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
