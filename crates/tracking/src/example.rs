//! `rewards`: the mean reward of each step, as CSV.

use std::fs::File;
use std::io::Write;

use anyhow::Result;

use super::{Ending, Metrics, StepTable, TrackedRun, Tracker, TrackerEntry};

pub(super) const TRACKER: TrackerEntry = TrackerEntry {
    name: "rewards",
    doc: "The mean reward of each step, in rewards.csv of the run's folder",
    reads: &[],
    open: |session| Ok(Box::new(Rewards(open(session)?))),
};

struct Rewards(File);

fn open(session: &TrackedRun) -> Result<File> {
    Ok(File::options().create(true).append(true).open(session.dir.join("rewards.csv"))?)
}

impl Tracker for Rewards {
    fn log(&mut self, step: u64, metrics: &Metrics) -> Result<()> {
        if let Some(reward) = metrics.get("critic/score/mean") {
            writeln!(self.0, "{step},{reward}")?;
        }
        Ok(())
    }

    fn table(&mut self, _step: u64, _table: &StepTable) -> Result<()> {
        Ok(())
    }

    fn finish(&mut self, _ending: &Ending) -> Result<()> {
        Ok(self.0.sync_all()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let mut tracker = (TRACKER.open)(&TrackedRun::in_folder(folder.path().into(), None)).unwrap();
        let metrics = Metrics::from_iter([("critic/score/mean".to_owned(), 0.5)]);
        tracker.log(3, &metrics).unwrap();
        assert_eq!(std::fs::read_to_string(folder.path().join("rewards.csv")).unwrap(), "3,0.5\n");
    }
}
