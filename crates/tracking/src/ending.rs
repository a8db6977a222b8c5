//! The end of a run, and the time that its trackers may take to finish.

use std::time::{Duration, Instant};

use burnish_util::interrupt::Interrupt;

/// Reason why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All steps are done.
    Finished,
    /// The run received a stop request; it can be resumed.
    Interrupted,
    /// An error ended the run.
    Failed,
}

/// Time that all trackers together may take after a stop request. Kubernetes and Slurm kill a process half a minute after the
/// request, and finishing and saving the step takes part of that time too.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// The end of a run, as passed to its trackers. The run's record has it already.
#[derive(Clone, Debug)]
pub struct Ending {
    pub exit: Exit,
    interrupt: Interrupt,
    hurried: bool,
    started: Instant,
}

impl Ending {
    /// Creates an ending with the current time.
    pub fn new(exit: Exit, interrupt: &Interrupt) -> Self {
        let hurried = exit == Exit::Interrupted || interrupt.is_requested();
        Self { exit, interrupt: interrupt.clone(), hurried, started: Instant::now() }
    }

    /// Creates the ending of a run without a stop request, for tests.
    #[cfg(test)]
    pub(super) fn uninterrupted(exit: Exit) -> Self {
        Self::new(exit, &Interrupt::default())
    }

    /// Returns how long a caller may still wait if it wants to wait for `patience`. After a stop request: at most until ten
    /// seconds after the end. Once a signal arrives after the end: no time.
    pub fn time_left(&self, patience: Duration) -> Duration {
        let at_most = match (self.hurried, self.interrupt.is_requested()) {
            (true, _) => patience.min(STOP_LIMIT),
            (false, true) => Duration::ZERO,
            (false, false) => patience,
        };
        at_most.saturating_sub(self.started.elapsed())
    }

    /// Returns the time since the run ended.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(100_000);

    #[test]
    fn who_has_asked_once_waits_little_and_who_asks_meanwhile_not_at_all() {
        let interrupt = Interrupt::default();
        let [finished, interrupted, failed] =
            [Exit::Finished, Exit::Interrupted, Exit::Failed].map(|exit| Ending::new(exit, &interrupt));
        assert!(
            finished.time_left(LONG) > STOP_LIMIT
                && failed.time_left(LONG) > STOP_LIMIT
                && interrupted.time_left(LONG) <= STOP_LIMIT
        );
        assert_eq!(interrupted.time_left(Duration::ZERO), Duration::ZERO);
        interrupt.ask();
        assert_eq!([finished.time_left(LONG), failed.time_left(LONG)], [Duration::ZERO; 2]);
        assert!(interrupted.time_left(LONG) > Duration::ZERO, "a second signal ends the process itself");
        // The stop was requested during the last step.
        let late = Ending::new(Exit::Finished, &interrupt).time_left(LONG);
        assert!(late > Duration::ZERO && late <= STOP_LIMIT);
    }
}
