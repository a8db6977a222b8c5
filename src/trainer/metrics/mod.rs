//! The metrics of a step, under the names of verl and of TRL.

pub(super) mod agent_metrics;
mod batch_metrics;
pub(super) mod depth;
mod groups;
pub(super) mod timing;
pub(super) mod trl_metrics;

pub(super) use batch_metrics::{of_batch, of_values, spread, turns, variance_proxy};
