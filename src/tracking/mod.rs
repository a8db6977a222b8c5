//! Trackers: the destinations of each step's metrics. Every destination is one file and one line of [`TRACKERS`].
//!
//! A run opens the trackers that its `trainer.logger` names and logs one [`Metrics`] per step to all of them. When a run is
//! resumed, trackers that write files continue these files without the rows that the resumed run will write again. A tracker that
//! fails during the run causes a warning and is counted; the run continues.

mod bridge;
mod console;
mod ending;
mod file;
mod metrics;
mod mlflow;
mod outbox;
mod progress;
mod session;
mod table;
mod tensorboard;
mod tracker;
mod wandb;

use std::thread;

use anyhow::{Error, Result, bail};

use crate::util::choice::Choice;
use crate::util::suggest::did_you_mean;
pub use ending::{Ending, Exit};
pub use file::place as metrics_file;
pub use metrics::Metrics;
pub use progress::{AboveBar, Progress};
pub use session::Session;
pub use table::{Cell, Table};
pub use tracker::{Entry, Tracker};

impl std::fmt::Debug for Open {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// All trackers.
pub static TRACKERS: &[Entry] = &[
    console::TRACKER,
    file::TRACKER,
    tensorboard::TRACKER,
    wandb::TRACKER,
    mlflow::TRACKER,
    bridge::SWANLAB,
    bridge::TRACKIO,
    bridge::CLEARML,
    bridge::VEMLP_WANDB,
];

/// Returns the names that `trainer.logger` may hold, for the configuration.
pub fn choices() -> impl Iterator<Item = Choice> {
    TRACKERS.iter().map(|entry| Choice { reads: entry.reads.to_vec(), ..Choice::plain("trainer.logger", entry.name) })
}

/// The open trackers of a run; none by default.
#[derive(Debug, Default)]
pub struct Trackers {
    open: Vec<Open>,
}

struct Open {
    name: &'static str,
    tracker: Box<dyn Tracker>,
    /// The number of calls that failed; `last` is the latest error.
    failed: u64,
    last: Option<Error>,
}

impl Trackers {
    /// Opens the trackers called `names`, and the metrics file, which every run has.
    ///
    /// # Errors
    /// If a name is unknown or occurs twice, or if a tracker cannot be started.
    pub fn open(names: &[String], session: &Session) -> Result<Self> {
        session.begin()?;
        let mut entries = check(names)?;
        // The metrics file is opened last: if another tracker cannot be started, the file stays as it was.
        entries.retain(|entry| entry.name != file::TRACKER.name);
        entries.push(&file::TRACKER);
        Self::of(entries, session)
    }

    /// Opens the console alone, for commands that must not write to a run's folder.
    ///
    /// # Errors
    /// Never at present.
    pub fn console(session: &Session) -> Result<Self> {
        Self::of(vec![&console::TRACKER], session)
    }

    fn of(entries: Vec<&'static Entry>, session: &Session) -> Result<Self> {
        let open = |entry: &'static Entry| -> Result<Open> {
            Ok(Open { name: entry.name, tracker: (entry.open)(session)?, failed: 0, last: None })
        };
        Ok(Self { open: entries.into_iter().map(open).collect::<Result<_>>()? })
    }

    /// Adds a tracker, for tests.
    #[cfg(test)]
    pub(crate) fn add(&mut self, name: &'static str, tracker: Box<dyn Tracker>) {
        self.open.push(Open { name, tracker, failed: 0, last: None });
    }

    /// See [`Tracker::log`].
    pub fn log(&mut self, step: u64, metrics: &Metrics) {
        self.each(|tracker| tracker.log(step, metrics));
    }

    /// See [`Tracker::table`].
    pub fn table(&mut self, step: u64, table: &Table) {
        self.each(|tracker| tracker.table(step, table));
    }

    /// See [`Tracker::finish`]. Logs which trackers have failed, and how often.
    pub fn finish(&mut self, ending: &Ending) {
        // All at the same time, because each may have to wait for a server.
        thread::scope(|scope| {
            self.open.iter_mut().for_each(|open| {
                scope.spawn(move || open.call(|tracker| tracker.finish(ending)));
            });
        });
        for Open { name, failed, last, .. } in self.open.drain(..) {
            if let Some(last) = last.filter(|_| failed > 1) {
                tracing::warn!("tracker `{name}` failed {failed} times; last: {last:#}");
            }
        }
    }

    fn each(&mut self, mut call: impl FnMut(&mut dyn Tracker) -> Result<()>) {
        self.open.iter_mut().for_each(|open| open.call(&mut call));
    }
}

impl Open {
    fn call(&mut self, call: impl FnOnce(&mut dyn Tracker) -> Result<()>) {
        if let Err(error) = call(self.tracker.as_mut()) {
            self.failed += 1;
            if self.failed == 1 {
                tracing::warn!("tracker `{}` failed, which the run does not depend on: {error:#}", self.name);
            }
            self.last = Some(error);
        }
    }
}

/// Looks up the entries of `names`. The configuration's validation has checked already that each name is known.
fn check(names: &[String]) -> Result<Vec<&'static Entry>> {
    let mut entries: Vec<&'static Entry> = Vec::new();
    for name in names {
        let Some(entry) = TRACKERS.iter().find(|entry| entry.name == name) else {
            bail!("trainer.logger: there is no '{name}'; {}", did_you_mean(name, TRACKERS.iter().map(|entry| entry.name)));
        };
        if entries.iter().any(|earlier| earlier.name == entry.name) {
            bail!("trainer.logger: '{name}' is named twice");
        }
        entries.push(entry);
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn bad_names_are_refused_with_advice() {
        let error = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            check(&names).err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(error(&["console", "file"]), "");
        assert!(error(&["tensorbord"]).contains("tensorboard"));
        assert!(error(&["file", "file"]).contains("twice"));
        assert!(TRACKERS.iter().all(|entry| !entry.doc.is_empty()));
    }

    /// Fails at odd steps, and remembers what reached it.
    struct Flaky(Arc<Mutex<Vec<String>>>);

    impl Tracker for Flaky {
        fn log(&mut self, step: u64, _: &Metrics) -> Result<()> {
            self.0.lock().unwrap().push(step.to_string());
            if step % 2 == 1 { bail!("no row of step {step}") } else { Ok(()) }
        }

        fn table(&mut self, _: u64, table: &Table) -> Result<()> {
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
        let open = |name, calls: &Arc<Mutex<_>>| Open { name, tracker: Box::new(Flaky(calls.clone())), failed: 0, last: None };
        let mut trackers = Trackers { open: vec![open("first", &calls[0]), open("second", &calls[1])] };
        (1..=3).for_each(|step| trackers.log(step, &Metrics::new()));
        assert_eq!(trackers.open.iter().map(|open| open.failed).collect::<Vec<_>>(), [2, 2]);
        trackers.finish(&Ending::of(Exit::Interrupted));
        assert!(calls.iter().all(|calls| *calls.lock().unwrap() == ["1", "2", "3", "Interrupted"]));
    }
}
