//! The time that a rank spends waiting, and the pauses between two looks.

use std::thread;
use std::time::{Duration, Instant};

/// A clock that runs only while this rank looks at it: time in which the process was stopped, or the machine asleep, is not counted
/// against the others.
pub struct Clock {
    waited: Duration,
    looked: Instant,
}

impl Clock {
    pub fn new() -> Self {
        Self { waited: Duration::ZERO, looked: Instant::now() }
    }

    /// The time waited so far, by all waits together.
    pub fn look(&mut self) -> Duration {
        let now = Instant::now();
        self.waited += (now - self.looked).min(Duration::from_millis(100));
        self.looked = now;
        self.waited
    }

    /// The time at the last look.
    pub fn last(&self) -> Duration {
        self.waited
    }
}

/// What a rank waits for, which decides how it does.
#[derive(Clone, Copy)]
pub enum For {
    /// Others, which may be minutes behind: asleep soon, because they may need this processor.
    Others,
    /// Data that is on its way: MPI moves it only while it is asked.
    Data,
}

impl For {
    /// Passes the time until the next look, after so long a wait.
    pub fn pause(self, waited: Duration) {
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
