//! Saves the parts of a trained model to a checkpoint and loads them again, one call per [`Learner`].

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use burnish_checkpoint::CheckpointPart;
use burnish_config::schema::CheckpointContent::{self, Extra, HfModel, Model, Optimizer};
use burnish_optim::learner::{HUGGINGFACE, OPTIMIZER, SavedParts};
use burnish_optim::{Learner, StatePart};

/// Returns true if `contents` has the weights.
pub(crate) fn has_weights(contents: &[CheckpointContent]) -> bool {
    contents.iter().any(|part| matches!(part, Model | HfModel))
}

/// Writes the parts of a learner that `contents` (`checkpoint.save_contents`) names.
pub(crate) fn save_learner(
    learner: &Learner,
    folder: &Path,
    contents: &[CheckpointContent],
    tokenizer: &[PathBuf],
) -> Result<()> {
    let has = |part| contents.contains(&part);
    learner.save(folder, SavedParts { model: has(Model), merged: has(HfModel), optimizer: has(Optimizer) }, tokenizer)
}

/// Returns this rank's values of a part of an optimizer's state, for the rank that writes a checkpoint.
///
/// # Panics
/// If no learner has that name: all ranks build the same learners.
pub fn state_part<'a>(learners: impl IntoIterator<Item = &'a Learner>, part: &StatePart) -> Vec<f32> {
    let learner = learners.into_iter().find(|learner| learner.name == part.learner);
    learner.unwrap_or_else(|| panic!("no learner `{}`", part.learner)).state_part(part)
}

/// Restores the parts of a learner that `contents` (`checkpoint.load_contents`) names. `key`: the setting of `contents`.
///
/// # Errors
/// If the checkpoint lacks a part.
pub(crate) fn load_learner(learner: &mut Learner, folder: &Path, contents: &[CheckpointContent], key: &str) -> Result<()> {
    let (weights, optimizer) = (has_weights(contents), contents.contains(&Optimizer));
    for (part, is_needed, file) in [("model", weights, HUGGINGFACE), ("optimizer", optimizer, OPTIMIZER)] {
        check_part(part, is_needed, &folder.join(file), key)?;
    }
    learner.load(folder, weights, optimizer)
}

/// Warns of a part that the run does not need, and refuses a checkpoint without a needed part.
pub(crate) fn check_part(part: &str, is_needed: bool, file: &Path, key: &str) -> Result<()> {
    if is_needed && !file.exists() {
        bail!("the checkpoint has no `{part}`; remove it from {key}");
    }
    if !is_needed {
        tracing::warn!("{key} has no `{part}`, so it starts from scratch");
    }
    Ok(())
}

/// Returns the parts of a checkpoint that `contents` (`checkpoint.load_contents`) loads, for a comparison of settings.
pub fn loaded(contents: &[CheckpointContent]) -> Vec<CheckpointPart> {
    let policy = has_weights(contents) || contents.contains(&Optimizer);
    let parts = [(policy, CheckpointPart::Policy), (contents.contains(&Extra), CheckpointPart::Data)];
    parts.into_iter().filter(|(loaded, _)| *loaded).map(|(_, part)| part).collect()
}
