//! The description of a training pipeline: its step, its validation, and its part of a checkpoint.

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

/// A training pipeline. [`Run`](super::Run) does the rest: it repeats the step, validates, logs, saves, resumes and stops.
///
/// Everything random in a step is keyed by (seed, purpose, step, …), so the step is all the generator state there is.
pub trait Pipeline {
    /// The state that a step changes beside the weights, the optimizers and the position in the data; saved in
    /// `trainer_state.json`.
    type State: Clone + Serialize + DeserializeOwned;

    /// Makes the step `at.step` and returns its row of metrics.
    ///
    /// # Errors
    /// [`Interrupted`](burnish_util::interrupt::Interrupted) or [`NothingUpdated`] as long as no weight has changed: the loop then takes
    /// back the [`State`](Self::State) and saves it. Any other error ends the run as it stands.
    fn step(&mut self, at: &mut Context) -> Result<Metrics>;

    /// True if there is something to validate on.
    fn validates(&self) -> bool {
        true
    }

    /// The metrics of a validation after step `at.step`.
    ///
    /// # Errors
    /// The errors of [`step`](Self::step); a validation changes no weight.
    fn validate(&mut self, at: &mut Context) -> Result<Metrics>;

    /// Adds to the row of a step, validated or not, what was counted since the last one.
    fn complete(&mut self, _row: &mut Metrics) {}

    /// The row under the names that the settings ask for.
    fn renamed(&self, row: Metrics) -> Metrics {
        row
    }

    /// The number that the progress bar shows, with its name.
    fn headline(&self, row: &Metrics) -> (&'static str, f64);

    /// The position in the training data.
    fn sampler(&mut self) -> &mut Sampler;

    fn state(&self) -> Self::State;

    fn set_state(&mut self, state: Self::State);

    /// CRC-32, in hexadecimal, of what validation measures on; `None` where nothing is compared between validations.
    fn validation_crc(&self) -> Option<&str> {
        None
    }

    /// Writes the weights and optimizers that `checkpoint.save_contents` names into a checkpoint's folder.
    ///
    /// # Errors
    /// A file cannot be written.
    fn save(&self, folder: &Path) -> Result<()>;

    /// Called on all ranks once the checkpoint of `step`, which [`save`](Self::save) wrote, is complete.
    fn saved(&mut self, _step: u64) {}

    /// The part of an optimizer's state that rank 0 asks for while it [saves](Self::save), on the other ranks.
    fn state_part(&self, part: &StatePart) -> Vec<f32>;

    /// A checksum of all weights, which all ranks must have alike.
    fn fingerprint(&self) -> String;

    /// A checksum of the rows for training and validation, which all ranks must have alike.
    fn data_crc(&self) -> String;

    /// Reads the weights and optimizers that `checkpoint.load_contents` names from a checkpoint's folder.
    ///
    /// # Errors
    /// A part is missing or does not fit.
    fn load(&mut self, folder: &Path) -> Result<()>;

    /// Fits the state of a checkpoint to settings that have changed since, before [`set_state`](Self::set_state).
    ///
    /// # Errors
    /// A change that the state or the position in the `data` does not survive.
    fn adapt(&self, state: Self::State, _data: &SamplerState, _changes: &Changes) -> Result<Self::State> {
        Ok(state)
    }

    /// Says in a few lines of the log what is about to happen, once it is known where the run starts.
    fn announce(&self, at: &Context);
}

/// An error of a step or a validation before it has updated anything: the state before it is whole, and is saved.
#[derive(Debug)]
pub struct NothingUpdated(pub Error);

impl fmt::Display for NothingUpdated {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:#}", self.0)
    }
}

impl std::error::Error for NothingUpdated {}
