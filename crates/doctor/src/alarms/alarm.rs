//! An entry of the registry of alarms.

use crate::check::Check;
use crate::evidence::Evidence;
use crate::finding::Finding;

/// A check that is made after every step of a run that trains.
pub struct Alarm {
    /// The check. The alarm has its name, its sentence and its remedy.
    pub check: &'static Check,
    /// Condition under which the finding is an alarm, as a phrase: `fails in ten steps in a row`.
    pub when: &'static str,
    /// Returns true if the finding is an alarm. The rows are those up to the present step.
    pub(crate) rings: fn(&Evidence, &Finding) -> bool,
}

impl Alarm {
    /// Returns the name of the metric that is 1 at the step of the alarm, such as `alarm/no_signal`.
    pub fn metric(&self) -> String {
        format!("alarm/{}", self.check.name.replace(' ', "_").to_lowercase())
    }
}
