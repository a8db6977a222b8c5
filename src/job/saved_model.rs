//! A run or a checkpoint in place of a model: every setting that names a model takes both.
//!
//! The best checkpoint of a run is taken if validation named one, else the last. A LoRA adapter is merged into its
//! base model, once for each checkpoint, in the folder `merged` of the run.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use safetensors::Dtype;

use super::merged_weights::{WeightForm, write_weights};
use burnish_checkpoint::{Checkpoints, step_of, verify_part, verify_sizes};
use burnish_optim::learner::{ADAPTER, HUGGINGFACE};
use burnish_run::{RunInfo, RunState};
use burnish_util::crc::IEEE;
use burnish_util::fs::AtomicDir;

/// Folder of a run with merged models.
const MERGED: &str = "merged";
/// Parts of a checkpoint of reinforcement learning.
pub(crate) const ACTOR: &str = "actor";
pub(crate) const CRITIC: &str = "critic";
/// Files that make a folder a model, an adapter or a tokenizer.
const OF_MODELS: &[&str] = &["config.json", "adapter_config.json", "tokenizer.json", "tokenizer_config.json"];

/// The checkpoint of a run that a command takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CheckpointChoice {
    /// The best by validation if the run names one, else the last.
    BestOrLast,
    Last,
}

/// A model in a checkpoint.
pub(crate) struct SavedModel {
    /// The folder `global_step_N`.
    pub checkpoint: PathBuf,
    /// The folder with the model: of the checkpoint, or of its actor or critic.
    pub part: PathBuf,
    /// The run's folder and why this checkpoint was chosen, if the user named a run.
    pub of_run: Option<(PathBuf, &'static str)>,
}

impl SavedModel {
    /// Finds the model if the path is a run's folder, a checkpoint, or a part of one; `None` for any other path. `first`: the
    /// part that is taken if the checkpoint has it.
    ///
    /// # Errors
    /// If a run has not saved a checkpoint, or the checkpoint is damaged or holds no model.
    pub(crate) fn find(path: &Path, first: &str) -> Result<Option<Self>> {
        if !path.is_dir() || OF_MODELS.iter().any(|name| path.join(name).is_file()) {
            return Ok(None);
        }
        let above = path.parent().filter(|above| step_of(above).is_ok());
        let is_part = [ACTOR, CRITIC].iter().any(|name| path.file_name() == Some(OsStr::new(name)));
        if let Some(checkpoint) = above.filter(|_| is_part) {
            verify_sizes(checkpoint)?;
            ensure!(holds_model(path), "{}", without_model(path));
            return Ok(Some(Self { checkpoint: checkpoint.to_owned(), part: path.to_owned(), of_run: None }));
        }
        let (checkpoint, of_run) = match step_of(path) {
            Ok(_) => (path.to_owned(), None),
            Err(_) => match chosen(path, CheckpointChoice::BestOrLast)? {
                Some((checkpoint, why)) => (checkpoint, Some((path.to_owned(), why))),
                None => return Ok(None),
            },
        };
        verify_sizes(&checkpoint)?;
        let part = [first, ACTOR].iter().map(|name| checkpoint.join(name)).find(|folder| holds_model(folder));
        let part = part.unwrap_or_else(|| checkpoint.clone());
        ensure!(holds_model(&part), "{}", without_model(&part));
        Ok(Some(Self { checkpoint, part, of_run }))
    }

    /// Returns the folder of the model's shape and its tokenizer; its weights too, unless the model is an adapter.
    pub(crate) fn folder(&self) -> PathBuf {
        self.part.join(HUGGINGFACE)
    }

    /// Returns the folder of the LoRA adapter.
    ///
    /// # Errors
    /// If the checkpoint has a whole model.
    pub(crate) fn adapter(&self) -> Result<PathBuf> {
        ensure!(
            self.is_adapter(),
            "{} holds a whole model and not a LoRA adapter: name it as the model's path",
            self.part.display()
        );
        Ok(self.part.join(ADAPTER))
    }

    /// Returns true if the weights are only the weights of a LoRA adapter.
    pub(crate) fn is_adapter(&self) -> bool {
        self.part.join(ADAPTER).is_dir()
    }

    /// Returns the folder of the whole model, after its files were compared with their checksums. An adapter is merged into its
    /// base model first.
    ///
    /// # Errors
    /// If a file is damaged, or the base model has moved or changed.
    pub(crate) fn full_model(&self) -> Result<PathBuf> {
        verify_part(&self.checkpoint, &self.part)?;
        if !self.is_adapter() {
            return Ok(self.folder());
        }
        let merged = self.merged()?;
        if merged.is_dir() {
            return Ok(merged);
        }
        let staged = AtomicDir::stage_own(&merged)?;
        let form = WeightForm { dtype: Dtype::F32, name: "float32", shard: SHARD, base: None };
        write_weights(&self.part, staged.path(), &form)?;
        tracing::info!("{}: the adapter is merged into its base model, in {}", self.part.display(), merged.display());
        // Another process of the run may have been faster.
        if merged.is_dir() { Ok(merged) } else { staged.commit().map(|()| merged) }
    }

    /// Returns the folder for the merged model; a checkpoint that was saved again has another one.
    fn merged(&self) -> Result<PathBuf> {
        let manifest = self.checkpoint.join("manifest.json");
        let bytes = fs::read(&manifest).with_context(|| format!("cannot read {}", manifest.display()))?;
        let run = self.checkpoint.parent().unwrap_or(Path::new("."));
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let part = if self.part == self.checkpoint { String::new() } else { format!("{}-", name(&self.part)) };
        Ok(run.join(MERGED).join(format!("{}-{part}{:08x}", name(&self.checkpoint), IEEE.checksum(&bytes))))
    }

    /// Returns a sentence about the checkpoint that was taken of a run; `None` if the user named the checkpoint.
    pub(crate) fn description(&self) -> Option<String> {
        let (run, why) = self.of_run.as_ref()?;
        Some(format!("{}, {why} of {}", self.checkpoint.display(), run.display()))
    }
}

/// Largest size of a file of merged weights, in bytes, as in an export.
const SHARD: usize = 5_000_000_000;

/// Returns the checkpoint of a run's folder, and the word for it; `None` if the folder does not belong to a run.
///
/// # Errors
/// If the run has not saved a checkpoint, with the setting that decides it.
pub(crate) fn chosen(run: &Path, choice: CheckpointChoice) -> Result<Option<(PathBuf, &'static str)>> {
    let checkpoints = Checkpoints::read_only(run);
    let best = checkpoints.named_best().filter(|_| choice == CheckpointChoice::BestOrLast);
    if let Some(step) = best {
        return Ok(Some((checkpoints.path(step), "the best checkpoint")));
    }
    if let Some(last) = checkpoints.newest() {
        return Ok(Some((last, "the last checkpoint")));
    }
    let found = RunInfo::read_damaged(run);
    let Some(info) = found.info else { return Ok(None) };
    let freq = info.config.iter().find(|setting| setting.key == "trainer.save_freq");
    let freq = freq.map_or(String::new(), |setting| format!(": trainer.save_freq={}", setting.value));
    match info.state {
        RunState::Finished => bail!("{} is the folder of a run that saved no checkpoint{freq}", run.display()),
        state => bail!("{} is the folder of a run that has saved no checkpoint so far (it is {})", run.display(), state.name()),
    }
}

/// Returns true if a part of a checkpoint holds a model or an adapter.
pub(crate) fn holds_model(folder: &Path) -> bool {
    [HUGGINGFACE, ADAPTER].iter().any(|name| folder.join(name).is_dir())
}

/// Returns the message for a part of a checkpoint without a model.
pub(crate) fn without_model(folder: &Path) -> String {
    match folder.is_dir() {
        true => format!("{} does not hold a model (perhaps checkpoint.save_contents was set without `model`)", folder.display()),
        false => format!("{} does not exist: the checkpoint lacks this part", folder.display()),
    }
}
