//! `rewards`: the mean reward of each step, as JSON lines.

use anyhow::Result;
use burnish_util::jsonl::StepLog;
use serde_json::json;

use super::{Ending, Metrics, StepTable, TrackedRun, Tracker, TrackerEntry};

pub(super) const TRACKER: TrackerEntry = TrackerEntry {
    name: "rewards",
    doc: "The mean reward of each step, in rewards.jsonl of the run's folder",
    reads: &[],
    open: |session| Ok(Box::new(Rewards(open(session)?))),
};

struct Rewards(StepLog);

fn open(session: &TrackedRun) -> Result<StepLog> {
    StepLog::open(&session.dir.join("rewards.jsonl"), session.resumed_step)
}

impl Tracker for Rewards {
    fn log(&mut self, step: u64, metrics: &Metrics) -> Result<()> {
        match metrics.get("critic/score/mean") {
            Some(reward) => self.0.append(&json!({"step": step, "reward": reward}).to_string()),
            None => Ok(()),
        }
    }

    fn table(&mut self, _step: u64, _table: &StepTable) -> Result<()> {
        Ok(())
    }

    fn finish(&mut self, _ending: &Ending) -> Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resumed_run_writes_each_step_once() {
        let folder = tempfile::tempdir().unwrap();
        let log = |resumed_step, steps: &[u64]| {
            let mut tracker = (TRACKER.open)(&TrackedRun::in_folder(folder.path().into(), resumed_step)).unwrap();
            let metrics = Metrics::from_iter([("critic/score/mean".to_owned(), 0.5)]);
            steps.iter().for_each(|step| tracker.log(*step, &metrics).unwrap());
        };
        log(None, &[1, 2, 3]);
        log(Some(2), &[3, 4]);
        assert_eq!(std::fs::read_to_string(folder.path().join("rewards.jsonl")).unwrap().lines().count(), 4);
    }
}
