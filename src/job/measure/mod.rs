//! The times of a run, measured before it: `--dry-run` makes small steps with the run's own models, and computes those of whole steps.
//!
//! [`measure`] makes steps of growing size, until one is as large as the run's own or the time for measuring is over. Learning
//! rates are 0, so weights stay as they are. [`StepForecast`] fits seconds to the updates and tokens of each phase.

mod forecast;
mod measurable;
mod report;
mod steps;

pub(crate) use forecast::{StepWork, TimedStep};
pub(crate) use measurable::{Measurable, StepPlan, StepSize};
pub(crate) use report::{RunLength, Times};
pub(crate) use steps::measure;

use anyhow::Result;

use super::hub_names::Weights;
use burnish_config::schema::Schema;

/// Finds the weights for a measurement; without one, or without weights on this machine, reports the missing weights. Returns the
/// reason if the steps cannot be measured.
///
/// # Errors
/// If weights are damaged.
pub(crate) fn prepare<C: Schema>(weights: Weights, config: &mut C, measures: bool) -> Result<Option<String>> {
    if measures && !weights.are_missing() {
        weights.fetch(config)?;
        return Ok(None);
    }
    weights.leave();
    Ok(Some("weights are missing on this machine; `trainer fetch` gets them".to_owned()))
}

/// Returns the lines about measured times.
pub(crate) fn described(times: Result<Times>, length: RunLength, price: Option<f64>) -> String {
    match times {
        Ok(times) => times.describe(length, price),
        Err(error) => not_measured(&format!("{error:#}")),
    }
}

/// Returns the line about times that were not measured.
pub(crate) fn not_measured(why: &str) -> String {
    format!("time        not measured: {why}\n")
}
