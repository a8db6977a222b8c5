//! Open trackers of a run.

use std::{fmt, thread};

use anyhow::{Error, Result};

use super::console::{self, Console};
use super::registry::named;
use super::{Ending, Metrics, StepTable, TrackedRun, Tracker, TrackerEntry, file};

/// Open trackers of a run; empty by default.
#[derive(Debug, Default)]
pub struct Trackers {
    open: Vec<OpenTracker>,
}

struct OpenTracker {
    name: &'static str,
    tracker: Box<dyn Tracker>,
    /// Number of calls that failed; `last` is the latest error.
    failed: u64,
    last: Option<Error>,
}

impl fmt::Debug for OpenTracker {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Trackers {
    /// Opens the trackers called `names`, and the metrics file, which every run has.
    ///
    /// # Errors
    /// If a name is unknown or occurs twice, or if a tracker cannot be started.
    pub fn open(names: &[String], session: &TrackedRun) -> Result<Self> {
        session.begin()?;
        let mut entries = named(names)?;
        // The metrics file is opened last: if another tracker cannot be started, the file stays unchanged.
        entries.retain(|entry| entry.name != file::TRACKER.name);
        entries.push(&file::TRACKER);
        Self::from_entries(entries, session)
    }

    /// Opens only the console, for commands that must not write to a run's folder.
    pub fn console(session: &TrackedRun) -> Self {
        let tracker = Box::new(Console::new(session));
        Self { open: vec![OpenTracker { name: console::TRACKER.name, tracker, failed: 0, last: None }] }
    }

    fn from_entries(entries: Vec<&'static TrackerEntry>, session: &TrackedRun) -> Result<Self> {
        let open = |entry: &'static TrackerEntry| -> Result<OpenTracker> {
            Ok(OpenTracker { name: entry.name, tracker: (entry.open)(session)?, failed: 0, last: None })
        };
        Ok(Self { open: entries.into_iter().map(open).collect::<Result<_>>()? })
    }

    /// Adds an open tracker.
    pub fn add(&mut self, name: &'static str, tracker: Box<dyn Tracker>) {
        self.open.push(OpenTracker { name, tracker, failed: 0, last: None });
    }

    /// Logs the metrics of a step to all trackers; see [`Tracker::log`].
    pub fn log(&mut self, step: u64, metrics: &Metrics) {
        self.each(|tracker| tracker.log(step, metrics));
    }

    /// Logs a table to all trackers; see [`Tracker::table`].
    pub fn table(&mut self, step: u64, table: &StepTable) {
        self.each(|tracker| tracker.table(step, table));
    }

    /// Finishes all trackers, see [`Tracker::finish`], and logs how often each has failed.
    pub fn finish(&mut self, ending: &Ending) {
        // All at the same time, because each may have to wait for a server.
        thread::scope(|scope| {
            self.open.iter_mut().for_each(|open| {
                scope.spawn(move || open.call(|tracker| tracker.finish(ending)));
            });
        });
        for OpenTracker { name, failed, last, .. } in self.open.drain(..) {
            if let Some(last) = last.filter(|_| failed > 1) {
                tracing::warn!("tracker `{name}` failed {failed} times; last: {last:#}");
            }
        }
    }

    fn each(&mut self, mut call: impl FnMut(&mut dyn Tracker) -> Result<()>) {
        self.open.iter_mut().for_each(|open| open.call(&mut call));
    }
}

impl OpenTracker {
    fn call(&mut self, call: impl FnOnce(&mut dyn Tracker) -> Result<()>) {
        if let Err(error) = call(self.tracker.as_mut()) {
            self.failed += 1;
            if self.failed == 1 {
                tracing::warn!("tracker `{}` failed (the run continues): {error:#}", self.name);
            }
            self.last = Some(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use anyhow::bail;

    use super::*;
    use crate::Exit;

    /// Fails at odd steps, and remembers every call.
    struct Flaky(Arc<Mutex<Vec<String>>>);

    impl Tracker for Flaky {
        fn log(&mut self, step: u64, _: &Metrics) -> Result<()> {
            self.0.lock().unwrap().push(step.to_string());
            if step % 2 == 1 { bail!("no row of step {step}") } else { Ok(()) }
        }

        fn table(&mut self, _: u64, table: &StepTable) -> Result<()> {
            self.0.lock().unwrap().push(table.name.to_owned());
            Ok(())
        }

        fn finish(&mut self, ending: &Ending) -> Result<()> {
            self.0.lock().unwrap().push(format!("{:?}", ending.exit));
            Ok(())
        }
    }

    #[test]
    fn a_tracker_that_fails_costs_neither_the_run_nor_the_others() {
        let calls: [Arc<Mutex<Vec<String>>>; 2] = Default::default();
        let open =
            |name, calls: &Arc<Mutex<_>>| OpenTracker { name, tracker: Box::new(Flaky(calls.clone())), failed: 0, last: None };
        let mut trackers = Trackers { open: vec![open("first", &calls[0]), open("second", &calls[1])] };
        (1..=3).for_each(|step| trackers.log(step, &Metrics::new()));
        assert_eq!(trackers.open.iter().map(|open| open.failed).collect::<Vec<_>>(), [2, 2]);
        trackers.finish(&Ending::uninterrupted(Exit::Interrupted));
        assert!(calls.iter().all(|calls| *calls.lock().unwrap() == ["1", "2", "3", "Interrupted"]));
    }
}
