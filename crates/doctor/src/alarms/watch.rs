//! Makes the checks of all alarms after every step.

use super::alarm::Alarm;
use super::kept_rows;
use crate::checks::ALARMS;
use crate::diagnose::finding;
use crate::evidence::{Evidence, MetricRow};
use crate::finding::Finding;

/// Follows the rows of a run, and raises each alarm at most once. Its state depends only on the rows, so a resumed run that
/// [replays](Self::over) its earlier rows gives the alarms of one that was never interrupted.
pub struct AlarmWatch {
    /// Settings of the run, and the rows that are [kept](kept_rows).
    evidence: Evidence,
    raised: Vec<RaisedAlarm>,
    silenced: Vec<String>,
}

/// An alarm with its finding.
#[derive(Clone)]
pub struct RaisedAlarm {
    /// The alarm.
    pub alarm: &'static Alarm,
    /// The step of its row.
    pub step: u64,
    /// The finding of its check at that step, with a remedy.
    pub finding: Finding,
}

impl AlarmWatch {
    /// Follows the rows of a record, and waits for the rows after them. Facts about its rows and texts are not used.
    pub fn over(record: &Evidence) -> Self {
        let mut evidence = Evidence::new(record.phase, record.library);
        evidence.settings.clone_from(&record.settings);
        evidence.functions.clone_from(&record.functions);
        let mut watch = Self { evidence, raised: vec![], silenced: vec![] };
        record.rows.iter().for_each(|row| watch.take(row.clone()));
        watch
    }

    /// Returns all alarms so far, in the order of their steps.
    pub fn raised(&self) -> &[RaisedAlarm] {
        &self.raised
    }

    /// Never raises the alarm of this name, because it was raised before the rows that this watch knows.
    pub fn silence(&mut self, name: &str) {
        self.silenced.push(name.to_owned());
    }

    /// Follows the row of a step, under the names that metrics.jsonl has. Returns the alarms of this step.
    pub fn follow<'a>(&mut self, step: u64, row: impl Iterator<Item = (&'a str, f64)>) -> &[RaisedAlarm] {
        let values = row.map(|(name, value)| (self.evidence.own_name(name), value)).collect();
        let before = self.raised.len();
        self.take(MetricRow { step, values });
        &self.raised[before..]
    }

    /// Returns the finding of a check on the kept rows; `None` without an alarm of this name.
    pub fn finding(&self, name: &str) -> Option<Finding> {
        let alarm = ALARMS.iter().find(|alarm| alarm.check.name == name)?;
        Some(finding(alarm.check, &self.evidence))
    }

    /// Returns the number of kept rows.
    #[cfg(test)]
    pub(super) fn rows(&self) -> usize {
        self.evidence.rows.len()
    }

    fn take(&mut self, row: MetricRow) {
        let step = row.step;
        kept_rows::add(&mut self.evidence.rows, row);
        for alarm in ALARMS {
            let name = alarm.check.name;
            if self.raised.iter().any(|one| one.alarm.check.name == name) || self.silenced.iter().any(|one| one == name) {
                continue;
            }
            let finding = finding(alarm.check, &self.evidence);
            if (alarm.rings)(&self.evidence, &finding) {
                self.raised.push(RaisedAlarm { alarm, step, finding });
            }
        }
    }
}
