//! Where the metrics of every step go: one file and one line of [`TRACKERS`] per destination.
//!
//! A run opens the trackers its `trainer.logger` names and logs one [`Metrics`] per step to all of them. Trackers that
//! write files continue them when the run is resumed, without the rows the resumed run will write again.

mod console;
mod file;
mod metrics;
mod progress;
mod tensorboard;

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::util::suggest::did_you_mean;
pub use metrics::Metrics;
pub use progress::{AboveBar, Progress};

/// Texts of one step in rows and columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// What it shows; part of file names.
    pub name: &'static str,
    pub columns: Vec<String>,
    /// One text per column in each.
    pub rows: Vec<Vec<String>>,
}

/// A destination of metrics.
pub trait Tracker {
    /// Logs the metrics of one step; steps never go back.
    fn log(&mut self, step: u64, metrics: &Metrics) -> Result<()>;

    /// Logs a table of a step, before the metrics of that step.
    fn table(&mut self, step: u64, table: &Table) -> Result<()>;

    /// Called once, at the end of a run that was not interrupted.
    fn finish(&mut self) -> Result<()>;
}

/// What trackers may know about the run.
#[derive(Clone, Debug)]
pub struct Session {
    /// `trainer.project_name`.
    pub project: String,
    /// `trainer.experiment_name`.
    pub experiment: String,
    /// `trainer.default_local_dir`.
    pub dir: PathBuf,
    /// The step of the checkpoint the run continues from; `None` for a fresh run.
    pub resumed_step: Option<u64>,
    /// The resolved configuration, as JSON.
    pub config_json: String,
    /// The progress bar that lines on the terminal must not tear.
    pub progress: Progress,
}

/// One tracker of the registry.
pub struct Entry {
    /// As written in `trainer.logger`.
    pub name: &'static str,
    /// What it writes, and where.
    pub doc: &'static str,
    /// Starts it.
    pub open: fn(&Session) -> Result<Box<dyn Tracker>>,
}

/// All trackers.
pub static TRACKERS: &[Entry] = &[console::TRACKER, file::TRACKER, tensorboard::TRACKER];

/// The trackers of a run; by default none.
#[derive(Default)]
pub struct Trackers {
    open: Vec<Box<dyn Tracker>>,
}

impl Trackers {
    /// Opens the trackers of `names`, all of which must be known and different; see [`check`].
    pub fn open(names: &[String], session: &Session) -> Result<Self> {
        let open = check(names)?.into_iter().map(|entry| (entry.open)(session)).collect::<Result<_>>()?;
        Ok(Self { open })
    }
}

impl Tracker for Trackers {
    fn log(&mut self, step: u64, metrics: &Metrics) -> Result<()> {
        self.open.iter_mut().try_for_each(|tracker| tracker.log(step, metrics))
    }

    fn table(&mut self, step: u64, table: &Table) -> Result<()> {
        self.open.iter_mut().try_for_each(|tracker| tracker.table(step, table))
    }

    fn finish(&mut self) -> Result<()> {
        self.open.iter_mut().try_for_each(|tracker| tracker.finish())
    }
}

/// The entries of `names`. That each is known is checked with the configuration already.
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
    use super::*;

    fn session(dir: PathBuf, resumed_step: Option<u64>) -> Session {
        let [project, experiment, config_json] = ["project", "experiment", "{}"].map(String::from);
        Session { project, experiment, dir, resumed_step, config_json, progress: Progress::hidden() }
    }

    #[test]
    fn every_tracker_logs_finishes_and_resumes() {
        // These point at somebody's own files, which a test must not touch.
        if ["VERL_FILE_LOGGER_PATH", "VERL_FILE_LOGGER_ROOT", "TENSORBOARD_DIR"]
            .iter()
            .any(|name| std::env::var_os(name).is_some())
        {
            return;
        }
        let metrics: Metrics = [("a/b", 1.5), ("none", f64::NAN)].into_iter().collect();
        let rows = vec![vec!["1 + 1\n|".to_owned(), "2".to_owned()]];
        let table = Table { name: "texts", columns: vec!["query".into(), "response".into()], rows };
        for entry in TRACKERS {
            assert!(!entry.doc.is_empty());
            let dir = tempfile::tempdir().unwrap();
            for resumed_step in [None, Some(1)] {
                let mut tracker = (entry.open)(&session(dir.path().into(), resumed_step)).unwrap();
                for step in [1, 2] {
                    tracker.table(step, &table).unwrap();
                    tracker.log(step, &metrics).unwrap();
                }
                tracker.finish().unwrap();
            }
        }
    }

    #[test]
    fn bad_names_are_refused_with_advice() {
        let error = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            check(&names).err().map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(error(&["console", "file"]), "");
        assert!(error(&["tensorbord"]).contains("tensorboard"));
        assert!(error(&["file", "file"]).contains("twice"));
    }
}
