//! The times of a run, measured before it: `--dry-run` makes small steps with the run's own models, and computes those of whole steps.
//!
//! [`measure`] makes steps of growing size, until one is as large as the run's own or the time for measuring is over. Learning
//! rates are 0, so weights do not change. [`StepForecast`] fits seconds to the updates and tokens of each phase.

mod forecast;
mod lines;
mod measurable;
mod report;
mod steps;

pub(crate) use forecast::{StepWork, TimedStep};
pub(crate) use lines::{lines, prepare};
pub(crate) use measurable::{Measurable, StepPlan, StepSize};
pub(crate) use report::{RunLength, Times};
pub(crate) use steps::measure;
