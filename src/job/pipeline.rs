//! The interface of a training pipeline: its step, its validation, and its part of a checkpoint.

use std::fmt;
use std::path::Path;

use anyhow::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::context::Context;
use burnish_checkpoint::Changes;
use burnish_data::{Sampler, SamplerState};
use burnish_optim::StatePart;
use burnish_tracking::Metrics;

/// A training pipeline. [`Run`](super::Run) repeats its step, validates, logs, saves, resumes and stops.
///
/// Everything random in a step is keyed by (seed, purpose, step, …), so a run needs no generator state.
pub trait Pipeline {
    /// State that a step changes, other than weights, optimizers and the position in the data. Saved in `trainer_state.json`.
    type State: Clone + Serialize + DeserializeOwned;

    /// Makes the step `at.step` and returns its row of metrics.
    ///
    /// # Errors
    /// [`Interrupted`](burnish_util::interrupt::Interrupted) or [`NothingUpdated`] before the first update: the run loop then
    /// restores the [`State`](Self::State) from before the step and saves it. Any other error ends the run at once.
    fn step(&mut self, at: &mut Context) -> Result<Metrics>;

    /// Returns true if there is something to validate on.
    fn validates(&self) -> bool;

    /// Returns the metrics of a validation after step `at.step`.
    ///
    /// # Errors
    /// The errors of [`step`](Self::step); a validation changes no weight.
    fn validate(&mut self, at: &mut Context) -> Result<Metrics>;

    /// Adds counts since the last row to the row of a step, validated or not.
    fn complete(&mut self, _row: &mut Metrics) {}

    /// Renames the metrics of a row as the settings ask.
    fn renamed(&self, row: Metrics) -> Metrics {
        row
    }

    /// Returns the metric that the progress bar shows, with its name.
    fn headline(&self, row: &Metrics) -> (&'static str, f64);

    /// Position in the training data.
    fn sampler(&mut self) -> &mut Sampler;

    fn state(&self) -> Self::State;

    fn set_state(&mut self, state: Self::State);

    /// CRC-32, in hexadecimal, of the validation data; `None` if validations are not compared.
    fn validation_crc(&self) -> Option<&str> {
        None
    }

    /// Writes the weights and optimizers that `checkpoint.save_contents` names into a checkpoint's folder.
    ///
    /// # Errors
    /// If a file cannot be written.
    fn save(&self, folder: &Path) -> Result<()>;

    /// Called on all ranks once the checkpoint of `step`, written by [`save`](Self::save), is complete.
    fn saved(&mut self, _step: u64) {}

    /// Returns the part of an optimizer's state that rank 0 requests from the other ranks while it [saves](Self::save).
    fn state_part(&self, part: &StatePart) -> Vec<f32>;

    /// Checksum of all weights, equal on all ranks.
    fn fingerprint(&self) -> String;

    /// Checksum of the training and validation rows, equal on all ranks.
    fn data_crc(&self) -> String;

    /// Reads the weights and optimizers that `checkpoint.load_contents` names from a checkpoint's folder.
    ///
    /// # Errors
    /// If a part is missing or does not fit.
    fn load(&mut self, folder: &Path) -> Result<()>;

    /// Adapts the state of a checkpoint to settings that have changed since, before [`set_state`](Self::set_state).
    ///
    /// # Errors
    /// If the state or the position in the `data` cannot continue with the change.
    fn adapt(&self, state: Self::State, _data: &SamplerState, _changes: &Changes) -> Result<Self::State> {
        Ok(state)
    }

    /// Logs a few lines about what is about to happen, once the first step is known.
    fn announce(&self, at: &Context);
}

/// An error of a step or a validation before its first update. The state from before is intact, and is saved.
#[derive(Debug)]
pub struct NothingUpdated(pub Error);

impl fmt::Display for NothingUpdated {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl std::error::Error for NothingUpdated {}
