//! Everything that a run reads before its weights.

use anyhow::Result;

use super::hub_names::{self, Weights};
use super::models::open_device;
use super::problems::Problems;
use burnish_config::Loaded;
use burnish_config::schema::{Device, Dtype, Schema};

/// The weights that a run will load, its device, and its inputs.
pub(crate) struct RunInputs<I> {
    pub weights: Weights,
    pub device: burn::tensor::Device,
    pub inputs: I,
}

/// Resolves names, opens the device and reads the inputs. `note_missing_rows` looks for the data files if a name is wrong, because
/// the inputs cannot be read then.
///
/// # Errors
/// All problems of these that do not depend on each other.
pub(crate) fn find_inputs<C: Schema, I>(
    loaded: &mut Loaded<C>,
    device: Device,
    dtypes: fn(&C) -> Vec<(&'static str, Dtype)>,
    read: impl FnOnce(&Loaded<C>) -> Result<I>,
    note_missing_rows: fn(&C, &mut Problems),
) -> Result<RunInputs<I>> {
    let mut problems = Problems::default();
    let weights = problems.note(hub_names::find(loaded));
    let device = problems.note(open_device("trainer.device", device, &dtypes(&loaded.config)));
    let inputs = match weights.is_some() {
        true => problems.note(read(loaded)),
        false => {
            note_missing_rows(&loaded.config, &mut problems);
            None
        }
    };
    match (weights, device, inputs) {
        (Some(weights), Some(device), Some(inputs)) => Ok(RunInputs { weights, device, inputs }),
        _ => Err(problems.into_error()),
    }
}
