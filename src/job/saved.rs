//! The small state of a run: `trainer_state.json` and `data.json` of a checkpoint, also kept during a step to undo it. Random
//! streams are keyed by seed and step, so the step is their whole state.

use std::path::Path;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::early_stopping::Improvement;
use burnish_checkpoint::Best;
use burnish_data::SamplerState;
use burnish_util::fs::{read_json, write_json};

/// Position in the data, in a separate file as in verl.
pub(super) const DATA: &str = "data.json";
const STATE: &str = "trainer_state.json";

/// State that a step changes, other than weights and optimizers. `S` is the part that the pipeline adds.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct SavedState<S> {
    #[serde(default)]
    pub step: u64,
    pub total_steps: u64,
    /// Number of slices of a mini-batch whose gradients are summed.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub gradient_slices: usize,
    #[serde(default)]
    pub best: Option<Best>,
    /// CRC-32 of the validation data that the best value was measured on; some checkpoints lack it.
    #[serde(default)]
    pub validation: Option<String>,
    /// Validations since the last improvement, if the run may stop early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub improvement: Option<Improvement>,
    #[serde(flatten)]
    pub pipeline: S,
    #[serde(skip)]
    pub data: Option<SamplerState>,
}

fn one() -> usize {
    1
}

fn is_one(slices: &usize) -> bool {
    *slices == 1
}

impl<S: Serialize> SavedState<S> {
    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        write_json(&folder.join(DATA), &self.data)?;
        write_json(&folder.join(STATE), self)
    }
}

/// Returns the number of slices in a checkpoint's folder, if it has a state.
pub(super) fn slices(folder: &Path) -> Option<usize> {
    #[derive(Deserialize)]
    struct Slices {
        #[serde(default = "one")]
        gradient_slices: usize,
    }
    read_json::<Slices>(&folder.join(STATE)).ok().map(|state| state.gradient_slices)
}

/// Reads the position in the data and, if present, the state: the oldest checkpoints of supervised training lack it.
pub(super) fn read<S: for<'a> Deserialize<'a>>(folder: &Path) -> Result<(SamplerState, Option<SavedState<S>>)> {
    let data: SamplerState = read_json(&folder.join(DATA))?;
    let state = folder.join(STATE);
    let state: Option<SavedState<S>> = if state.exists() { Some(read_json(&state)?) } else { None };
    Ok((data, state))
}
