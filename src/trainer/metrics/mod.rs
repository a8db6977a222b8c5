//! The metrics of a step, under the names of verl and of TRL.

pub mod agent_metrics;
mod batch_metrics;
pub mod signal;
pub mod timing;
pub mod trl_metrics;

pub use batch_metrics::{of_batch, of_values, spread, turns, variance_proxy};
