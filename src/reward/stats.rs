//! What calls of reward functions took, and how often they failed.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::failure::FailureKind;

/// Filled by the threads that score, emptied by whoever reports.
#[derive(Debug, Default)]
pub struct Stats(Mutex<Taken>);

/// What happened since the last report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Taken {
    /// The time of each call, by function; in no order.
    pub calls: Vec<(String, Vec<Duration>)>,
    pub exceptions: usize,
    pub timeouts: usize,
    pub crashes: usize,
}

impl Stats {
    /// Times a call of this function; one that was none (`None`) does not count.
    pub fn time<T>(&self, function: &str, call: impl FnOnce() -> Option<T>) -> Option<T> {
        let start = Instant::now();
        let value = call()?;
        let took = start.elapsed();
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match taken.calls.iter_mut().find(|(known, _)| known == function) {
            Some((_, calls)) => calls.push(took),
            None => taken.calls.push((function.to_owned(), vec![took])),
        }
        Some(value)
    }

    /// Counts a failure; one of no kind is what a rule of ours says of a row, an exception.
    pub fn failed(&self, kind: Option<FailureKind>) {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match kind {
            None | Some(FailureKind::Exception) => taken.exceptions += 1,
            Some(FailureKind::Timeout) => taken.timeouts += 1,
            Some(FailureKind::Crash) => taken.crashes += 1,
        }
    }

    /// What was counted, which then counts from 0.
    pub fn take(&self) -> Taken {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
