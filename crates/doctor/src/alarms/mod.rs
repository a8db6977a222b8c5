//! Alarms: checks that are made after every step of a run. An alarm has the rule of its check and a more cautious threshold,
//! which is in the file of its check.

mod alarm;
mod kept_rows;
mod watch;
#[cfg(test)]
mod watch_tests;

pub use alarm::Alarm;
pub use watch::{AlarmWatch, RaisedAlarm};
