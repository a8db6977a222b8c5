//! The learning rates of a run.

use anyhow::Result;

use crate::job::models::schedule;
use burnish_config::schema::OptimConfig;
use burnish_doctor::RatePlan;

/// Optimizers whose updates have the size of the learning rate for any gradient.
const ADAM: &[&str] = &["adamw", "adam", "adamw8bit"];
/// Largest number of steps whose rate is computed.
const STEPS: usize = 10_000;

/// Returns the learning rates of a run of `steps`. `section`: the key of the settings.
///
/// # Errors
/// If a name is not in its registry.
pub(crate) fn rate_plan(section: &str, optim: &OptimConfig, steps: u64) -> Result<RatePlan> {
    let schedule = schedule(optim, steps)?;
    let steps = usize::try_from(steps).unwrap_or(usize::MAX);
    let rates = (0..steps).step_by(steps.div_ceil(STEPS).max(1)).map(|step| optim.lr * schedule.factor(step));
    Ok(RatePlan {
        section: section.to_owned(),
        optimizer: optim.optimizer.clone(),
        lr: optim.lr,
        highest: rates.fold(0.0, f64::max),
        warmup: schedule.warmup_steps,
        has_known_range: ADAM.contains(&optim.optimizer.to_lowercase().as_str()),
    })
}
