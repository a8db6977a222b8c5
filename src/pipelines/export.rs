//! `trainer export`: writes the model of a checkpoint to a folder that transformers loads, or its adapter to one that PEFT loads.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use safetensors::Dtype;

use super::export_card::card;
use crate::job::merged_weights::{WeightForm, copy, is_weights, write_weights};
use crate::job::saved_model::{ACTOR, CRITIC, CheckpointChoice, chosen, holds_model, without_model};
use crate::job::whole_model::write_whole;
use burnish_checkpoint::{step_of, verify};
use burnish_data::qwen2_steps::read_otherwise;
use burnish_gguf::{TensorType, write_gguf};
use burnish_hub::CARD;
use burnish_optim::learner::{ADAPTER, HUGGINGFACE};
use burnish_util::fs::AtomicDir;

/// The form of the export.
#[derive(Clone, Debug)]
pub enum ExportForm {
    /// All weights, with an adapter merged into its base model.
    Weights {
        /// The type in safetensors' terms; config.json calls it `name`.
        dtype: Dtype,
        name: &'static str,
        /// The largest size of a file in bytes.
        shard: usize,
        /// The base model's folder; `None` for the folder that the adapter names.
        base: Option<PathBuf>,
        /// A model of images and text, whose text part the weights replace in the copy that is written.
        into: Option<PathBuf>,
    },
    /// The adapter, unmerged.
    Adapter,
}

/// Finds a part of an undamaged checkpoint: the folder that holds the actor, the critic or a supervised model. Of a run's folder,
/// the last checkpoint counts.
///
/// # Errors
/// If the checkpoint is missing or damaged, or lacks the part.
pub fn find_part(path: &Path, part: Option<&str>) -> Result<PathBuf> {
    let path = fs::canonicalize(path).with_context(|| format!("no checkpoint and no run at {}", path.display()))?;
    let is_part = [ACTOR, CRITIC].into_iter().find(|name| path.file_name() == Some(OsStr::new(name)));
    // The path may name a part itself; its checkpoint is then the parent folder.
    if let (Some(inside), Some(above)) = (is_part, path.parent().filter(|above| step_of(above).is_ok())) {
        ensure!(part.is_none_or(|part| part == inside), "--part: {} is the {inside} itself", path.display());
        verify(above)?;
        ensure!(holds_model(&path), "{}", without_model(&path));
        return Ok(path);
    }
    let of_run = if step_of(&path).is_ok() { None } else { chosen(&path, CheckpointChoice::Last)? };
    if let Some((checkpoint, why)) = &of_run {
        tracing::info!("{}, {why} of {}", checkpoint.display(), path.display());
    }
    let path = of_run.map_or(path, |(checkpoint, _)| checkpoint);
    verify(&path)?;
    let folder = match part {
        Some(part) => path.join(part),
        None => [path.join(ACTOR), path.clone()].into_iter().find(|folder| holds_model(folder)).unwrap_or(path),
    };
    ensure!(holds_model(&folder), "{}", without_model(&folder));
    Ok(folder)
}

/// Writes a part of a checkpoint to a folder that must not exist yet; it appears complete or not at all. Its model card calls
/// it `name`; an existing README of the checkpoint is kept.
///
/// # Errors
/// If the base model has moved or changed, or if a file cannot be read or written.
pub fn export(part: &Path, form: &ExportForm, output: &Path, name: &str) -> Result<()> {
    ensure!(output.symlink_metadata().is_err(), "{} exists already", output.display());
    let staged = AtomicDir::stage(output)?;
    match form {
        ExportForm::Adapter => {
            copy(&part.join(ADAPTER), staged.path(), |_| true)?;
            copy(&part.join(HUGGINGFACE), staged.path(), |name| name != "config.json" && !is_weights(name))?;
        }
        ExportForm::Weights { dtype, name, shard, base, into } => {
            let form = WeightForm { dtype: *dtype, name, shard: *shard, base: base.as_deref() };
            match into {
                Some(whole) => write_whole(part, whole, staged.path(), &form)?,
                None => write_weights(part, staged.path(), &form)?,
            }
        }
    }
    if let Some(how) = read_otherwise(staged.path())? {
        tracing::warn!("{}: {how}", output.display());
    }
    let readme = staged.path().join(CARD);
    if !readme.exists() {
        fs::write(&readme, card(part, matches!(form, ExportForm::Adapter), name))
            .with_context(|| format!("cannot write {}", readme.display()))?;
    }
    staged.commit()
}

/// Writes a part of a checkpoint with its tokenizer to one GGUF file, for llama.cpp; it appears complete or not at all. `base`: the
/// folder of an adapter's base model, `None` for the folder that the adapter names.
///
/// # Errors
/// Those of [`export`], and if llama.cpp has no such model or tokenizer.
pub fn export_gguf(part: &Path, kind: TensorType, base: Option<&Path>, output: &Path) -> Result<()> {
    let name = output.file_stem().and_then(OsStr::to_str).unwrap_or("model");
    // A temporary folder holds the merged weights until the file is written.
    let staged = AtomicDir::stage(output)?;
    write_weights(part, staged.path(), &WeightForm { dtype: Dtype::F32, name: "float32", shard: usize::MAX, base })?;
    let file = staged.path().join("model.gguf");
    write_gguf(staged.path(), &file, kind, name)?;
    fs::rename(&file, output).with_context(|| format!("cannot write {}", output.display()))
}

/// Returns true if a folder is an export: a model or an adapter for transformers or PEFT, not a checkpoint.
pub(crate) fn is_exported(folder: &Path) -> bool {
    ["config.json", "adapter_config.json"].iter().any(|name| folder.join(name).is_file())
}
