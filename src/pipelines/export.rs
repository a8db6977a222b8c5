//! `trainer export`: writes the model of a checkpoint to a folder that transformers loads, or its adapter to one that PEFT loads.
//!
//! Tensors are copied from file to file one at a time; the whole model is never in memory.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use safetensors::Dtype;

use super::export_card::card;
use crate::job::hub_names::model_folder;
use crate::job::second_model::note_other_tokenizer;
use crate::job::sources;
use burnish_checkpoint::Sources;
use burnish_data::Tokenizer;
use burnish_data::qwen2_steps::read_otherwise;
use burnish_hub::CARD;
use burnish_model::DecoderConfig;
use burnish_model::hf_config::HfConfig;
use burnish_model::lora::peft::PeftAdapter;
use burnish_model::tensor_files::{Deferred, write_model};
use burnish_model::tensor_values::to_f32;
use burnish_model::weights::WeightFiles;
use burnish_optim::learner::{ADAPTER, HUGGINGFACE};
use burnish_util::copy::copy_into;
use burnish_util::fs::AtomicDir;

/// The form of the export.
#[derive(Clone, Debug)]
pub enum Form {
    /// All weights, with an adapter merged into its base model.
    Weights {
        /// The type in safetensors' terms; config.json calls it `name`.
        dtype: Dtype,
        name: &'static str,
        /// The largest size of a file in bytes.
        shard: usize,
        /// The base model's folder; `None` for the folder that the adapter names.
        base: Option<PathBuf>,
    },
    /// The adapter, unmerged.
    Adapter,
}

/// Finds a part of an undamaged checkpoint: the folder that holds the actor, the critic or a supervised model.
///
/// # Errors
/// If the checkpoint is missing or damaged, or lacks the part.
pub fn find_part(path: &Path, part: Option<&str>) -> Result<PathBuf> {
    if let (Err(_), Some(inside)) = (burnish_checkpoint::step_of(path), burnish_checkpoint::inside(path)) {
        bail!("{inside}");
    }
    let holds_model = |folder: &Path| [HUGGINGFACE, ADAPTER].iter().any(|name| folder.join(name).is_dir());
    let path = fs::canonicalize(path).with_context(|| format!("no checkpoint at {}", path.display()))?;
    // The path may name a part itself; its checkpoint is then the parent folder.
    let inside = ["actor", "critic"].iter().find(|name| path.file_name() == Some(OsStr::new(name)));
    if let (Some(inside), Some(above)) = (inside, path.parent().filter(|above| burnish_checkpoint::step_of(above).is_ok())) {
        ensure!(part.is_none_or(|part| part == *inside), "--part: {} is the {inside} itself", path.display());
        burnish_checkpoint::verify(above)?;
        ensure!(holds_model(&path), "{}", without_model(&path));
        return Ok(path);
    }
    burnish_checkpoint::verify(&path)?;
    let folder = match part {
        Some(part) => path.join(part),
        None => [path.join("actor"), path.clone()].into_iter().find(|folder| holds_model(folder)).unwrap_or(path),
    };
    ensure!(holds_model(&folder), "{}", without_model(&folder));
    Ok(folder)
}

fn without_model(folder: &Path) -> String {
    match folder.is_dir() {
        true => format!("{} does not hold a model (perhaps checkpoint.save_contents was set without `model`)", folder.display()),
        false => format!("{} does not exist: the checkpoint lacks this part", folder.display()),
    }
}

/// Writes a part of a checkpoint to a folder that must not exist yet; it appears complete or not at all. Its model card calls
/// it `name`; an existing README of the checkpoint is kept.
///
/// # Errors
/// If the base model has moved or changed, or if a file cannot be read or written.
pub fn export(part: &Path, form: &Form, output: &Path, name: &str) -> Result<()> {
    ensure!(output.symlink_metadata().is_err(), "{} exists already", output.display());
    let staged = AtomicDir::stage(output)?;
    let (huggingface, adapter) = (part.join(HUGGINGFACE), part.join(ADAPTER));
    match form {
        Form::Adapter => {
            copy(&adapter, staged.path(), |_| true)?;
            copy(&huggingface, staged.path(), |name| name != "config.json" && !is_weights(name))?;
        }
        Form::Weights { dtype, name, shard, base } => {
            let config = HfConfig::read(&huggingface)?;
            let source = Source::find(&huggingface, &adapter, base.as_deref(), &config)?;
            write_model(staged.path(), &source.tensors(*dtype)?, *shard)?;
            let path = staged.path().join("config.json");
            fs::write(&path, config.with_dtype(name)?).with_context(|| format!("cannot write {}", path.display()))?;
            copy(&huggingface, staged.path(), |name| name != "config.json" && !is_weights(name))?;
        }
    }
    if let Some(how) = read_otherwise(staged.path())? {
        tracing::warn!("{}: {how}", output.display());
    }
    let readme = staged.path().join(CARD);
    if !readme.exists() {
        fs::write(&readme, card(part, matches!(form, Form::Adapter), name))
            .with_context(|| format!("cannot write {}", readme.display()))?;
    }
    staged.commit()
}

/// Returns true if a folder is an export: a model or an adapter for transformers or PEFT, not a checkpoint.
pub(crate) fn is_exported(folder: &Path) -> bool {
    ["config.json", "adapter_config.json"].iter().any(|name| folder.join(name).is_file())
}

fn is_weights(name: &str) -> bool {
    name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json")
}

/// Copies the files and subfolders whose names are `wanted`.
fn copy(from: &Path, to: &Path, wanted: impl Fn(&str) -> bool) -> Result<()> {
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let path = entry?.path();
        let name = path.file_name().and_then(OsStr::to_str).with_context(|| format!("{} is not UTF-8", path.display()))?;
        if wanted(name) {
            copy_into(&path, to)?;
        }
    }
    Ok(())
}

/// Returns the checksum of the base model of a checkpoint's adapter, if the checkpoint has one. `huggingface`: the
/// folder of the part's model.
fn adapted_model(huggingface: &Path) -> Result<Option<String>> {
    let part = huggingface.parent().unwrap_or(huggingface);
    let checkpoint = if burnish_checkpoint::step_of(part).is_ok() { Some(part) } else { part.parent() };
    let key = match part.file_name().and_then(OsStr::to_str) {
        Some("actor") => "actor_rollout_ref.model.path",
        Some("critic") => "critic.model.path",
        _ => "model.path",
    };
    Ok(checkpoint.map(Sources::read).transpose()?.and_then(|sources| sources.0.get(key).cloned()))
}

/// The source of the weights: files, and an adapter to merge into them.
struct Source {
    files: WeightFiles,
    adapter: Option<PeftAdapter>,
    /// The head of the base model that the adapter's own head replaces.
    replaced: Option<String>,
}

impl Source {
    fn find(huggingface: &Path, adapter: &Path, base: Option<&Path>, config: &HfConfig) -> Result<Self> {
        let merged = ["model.safetensors", "model.safetensors.index.json"].iter().any(|name| huggingface.join(name).exists());
        if merged && base.is_none() {
            return Ok(Self { files: WeightFiles::open(huggingface)?, adapter: None, replaced: None });
        }
        ensure!(adapter.is_dir(), "--base: {} is not an adapter, the checkpoint holds all weights", huggingface.display());
        let mut adapter = PeftAdapter::read(adapter)?;
        let folder = match base {
            Some(base) => base.to_owned(),
            None => model_folder("the adapter's base model", Path::new(&adapter.base))?,
        };
        let files = WeightFiles::open(&folder).with_context(|| {
            format!("the adapter's base model is {}; if it has moved, name its folder with --base", folder.display())
        })?;
        let config = config.decoder()?;
        let base = HfConfig::read(&folder)?.decoder()?;
        // A run may have extended the model to longer sequences by override_config.
        let same = DecoderConfig { max_position_embeddings: config.max_position_embeddings, ..base } == config;
        ensure!(same, "the model in {} is not the base model of the adapter: its config.json differs", folder.display());
        if let Some(adapted) = adapted_model(huggingface)? {
            let is_it = sources::of_model(&folder)? == adapted;
            ensure!(is_it, "the model in {} is not the base model of the adapter: its weights differ", folder.display());
        }
        if let Ok(tokenizer) = Tokenizer::load(huggingface) {
            note_other_tokenizer("the adapter's base model", &tokenizer, &folder)?;
        }
        adapter.name_as_in(&files, &config).with_context(|| format!("the base model in {}", folder.display()))?;
        let head = config.naming.place("lm_head.weight").name;
        let replaced = (!adapter.saved.is_empty()).then_some(head);
        Ok(Self { files, adapter: Some(adapter), replaced })
    }

    /// Returns all tensors; each is read only when it is written.
    fn tensors(&self, dtype: Dtype) -> Result<Vec<Deferred<'_>>> {
        let own = self.adapter.iter().flat_map(|adapter| &adapter.saved);
        let own = own.map(|(name, (shape, values))| Ok(Deferred::new(name.clone(), shape.clone(), || values.clone())));
        let is_replaced = |name: &String| {
            self.replaced.as_ref() == Some(name) || self.adapter.as_ref().is_some_and(|adapter| adapter.saved.contains_key(name))
        };
        let of_files = self.files.tensors()?.into_iter().filter(|(name, _)| !is_replaced(name));
        let deferred = of_files.map(|(name, view)| {
            let known = matches!(view.dtype(), Dtype::F32 | Dtype::F16 | Dtype::BF16);
            ensure!(known, "tensor `{name}` has dtype {:?}, which burnish does not read", view.dtype());
            let (shape, of) = (view.shape().to_vec(), name.clone());
            let values = move || {
                let mut values = to_f32(&view).unwrap_or_default();
                self.adapter.iter().for_each(|adapter| adapter.merge(&of, &mut values));
                values
            };
            Ok(Deferred::new(name, shape, values))
        });
        deferred.chain(own).map(|tensor| Ok(tensor?.with_dtype(dtype))).collect()
    }
}
