//! The time that a rank spends waiting, and the pauses between two polls.

use std::thread;
use std::time::{Duration, Instant};

/// A clock that runs only while this rank reads it. So time in which the process was stopped or the machine asleep does not count
/// against the other ranks.
pub(super) struct WaitClock {
    waited: Duration,
    looked: Instant,
}

impl WaitClock {
    pub(super) fn new() -> Self {
        Self { waited: Duration::ZERO, looked: Instant::now() }
    }

    /// Returns the time waited so far, by all waits together.
    pub(super) fn look(&mut self) -> Duration {
        let now = Instant::now();
        self.waited += (now - self.looked).min(Duration::from_millis(100));
        self.looked = now;
        self.waited
    }

    /// Returns the time of the last reading.
    pub(super) fn last(&self) -> Duration {
        self.waited
    }
}

/// Kind of wait, which determines the pauses.
#[derive(Clone, Copy)]
pub(crate) enum WaitFor {
    /// For other ranks, which may be minutes behind. The pauses soon become sleeps, because the others may need this processor.
    Others,
    /// For data in transit. MPI moves data only while a rank polls.
    Data,
}

impl WaitFor {
    /// Sleeps until the next poll; longer waits poll less often.
    pub(super) fn pause(self, waited: Duration) {
        let (awake, dozing) = match self {
            Self::Others => (Duration::from_micros(200), Duration::from_millis(20)),
            Self::Data => (Duration::from_millis(200), Duration::MAX),
        };
        match waited {
            waited if waited < awake => thread::yield_now(),
            waited if waited < dozing => thread::sleep(Duration::from_micros(100)),
            _ => thread::sleep(Duration::from_millis(1)),
        }
    }
}
