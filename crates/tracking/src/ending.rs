//! The end of a run, and how long its trackers may take for it.

use std::time::{Duration, Instant};

use burnish_util::interrupt::Interrupt;

/// The reason why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All steps are done.
    Finished,
    /// The run was asked to stop; it can be resumed.
    Interrupted,
    /// An error ended the run.
    Failed,
}

/// The time that all trackers together may take once the run was asked to stop. Kubernetes and Slurm kill a process half a minute
/// after they ask, and finishing and saving the step takes part of that time too.
const HURRY: Duration = Duration::from_secs(10);

/// The end of a run, as its trackers are told of it. The run's record has it already.
#[derive(Clone, Debug)]
pub struct Ending {
    pub exit: Exit,
    interrupt: Interrupt,
    hurried: bool,
    begun: Instant,
}

impl Ending {
    /// Returns an ending that begins now.
    pub fn new(exit: Exit, interrupt: &Interrupt) -> Self {
        let hurried = exit == Exit::Interrupted || interrupt.asked();
        Self { exit, interrupt: interrupt.clone(), hurried, begun: Instant::now() }
    }

    /// Returns the ending of a run that nobody has asked to stop, for tests.
    #[cfg(test)]
    pub(super) fn of(exit: Exit) -> Self {
        Self::new(exit, &Interrupt::default())
    }

    /// Returns the time left to a caller that is ready to wait for `patience`: at most ten seconds after the end if the run was
    /// asked to stop, none once a signal arrives after the end.
    pub fn left(&self, patience: Duration) -> Duration {
        let at_most = match (self.hurried, self.interrupt.asked()) {
            (true, _) => patience.min(HURRY),
            (false, true) => Duration::ZERO,
            (false, false) => patience,
        };
        at_most.saturating_sub(self.begun.elapsed())
    }

    /// Returns the time since the run ended.
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
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
        assert!(finished.left(LONG) > HURRY && failed.left(LONG) > HURRY && interrupted.left(LONG) <= HURRY);
        assert_eq!(interrupted.left(Duration::ZERO), Duration::ZERO);
        interrupt.ask();
        assert_eq!([finished.left(LONG), failed.left(LONG)], [Duration::ZERO; 2]);
        assert!(interrupted.left(LONG) > Duration::ZERO, "a second signal ends the process itself");
        // The stop was requested during the last step.
        let late = Ending::new(Exit::Finished, &interrupt).left(LONG);
        assert!(late > Duration::ZERO && late <= HURRY);
    }
}
