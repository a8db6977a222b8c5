//! How a run ended, and how long those who are told of it may take.

use std::time::{Duration, Instant};

use crate::util::interrupt::Interrupt;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All steps are done.
    Finished,
    /// It was asked to stop, and can go on.
    Interrupted,
    /// An error ended it.
    Failed,
}

/// What all trackers together may take once somebody has asked the run to stop. Kubernetes and Slurm kill half a minute after they
/// ask, and the step has been finished and saved in that time too.
const HURRY: Duration = Duration::from_secs(10);

/// The end of a run, of which its trackers are told. It is in the run's record already.
#[derive(Clone, Debug)]
pub struct Ending {
    pub exit: Exit,
    interrupt: Interrupt,
    hurried: bool,
    begun: Instant,
}

impl Ending {
    /// It begins now.
    pub fn new(exit: Exit, interrupt: &Interrupt) -> Self {
        let hurried = exit == Exit::Interrupted || interrupt.asked();
        Self { exit, interrupt: interrupt.clone(), hurried, begun: Instant::now() }
    }

    /// Of a run that nobody has asked to stop, for tests.
    #[cfg(test)]
    pub(super) fn of(exit: Exit) -> Self {
        Self::new(exit, &Interrupt::default())
    }

    /// What is left for somebody who may take this long: little where the run was asked to stop, and nothing from the first signal
    /// after its end.
    pub fn left(&self, patience: Duration) -> Duration {
        let at_most = match (self.hurried, self.interrupt.asked()) {
            (true, _) => patience.min(HURRY),
            (false, true) => Duration::ZERO,
            (false, false) => patience,
        };
        at_most.saturating_sub(self.begun.elapsed())
    }

    /// How long ago it began.
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
        // Asked during the last step.
        let late = Ending::new(Exit::Finished, &interrupt).left(LONG);
        assert!(late > Duration::ZERO && late <= HURRY);
    }
}
