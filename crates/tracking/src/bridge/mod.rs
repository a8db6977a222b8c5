//! Trackers that can be reached only through their own Python package: a small process imports the package and gets the rows.

mod entries;
mod line;
mod process;
mod sdk;
#[cfg(test)]
mod tests;
mod transport;

pub(super) use entries::{CLEARML, SWANLAB, TRACKIO, VEMLP_WANDB};
pub(super) use sdk::Sdk;
pub(super) use transport::open;
