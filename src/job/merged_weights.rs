//! The weights of a part of a checkpoint as a model: copied, or a LoRA adapter merged into its base model.
//!
//! Tensors are copied from file to file one at a time; the whole model is never in memory.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use safetensors::Dtype;

use super::hub_model::complete_model;
use super::second_model::note_other_tokenizer;
use super::sources;
use burnish_checkpoint::Sources;
use burnish_data::Tokenizer;
use burnish_model::DecoderConfig;
use burnish_model::hf_config::HfConfig;
use burnish_model::lora::peft::PeftAdapter;
use burnish_model::rounded_files::RoundedFiles;
use burnish_model::tensor_files::{DeferredTensor, write_model};
use burnish_model::weights::WeightFiles;
use burnish_optim::learner::{ADAPTER, HUGGINGFACE};
use burnish_util::copy::copy_into;

/// The form of written weights.
pub(crate) struct WeightForm<'a> {
    /// The type in safetensors' terms; config.json calls it `name`.
    pub dtype: Dtype,
    pub name: &'a str,
    /// The largest size of a file in bytes.
    pub shard: usize,
    /// The base model's folder; `None` for the folder that the adapter names.
    pub base: Option<&'a Path>,
}

/// Writes all weights of a part of a checkpoint, its config.json and its tokenizer into a folder.
///
/// # Errors
/// If the base model has moved or changed, or if a file cannot be read or written.
pub(crate) fn write_weights(part: &Path, to: &Path, form: &WeightForm) -> Result<()> {
    let (huggingface, adapter) = (part.join(HUGGINGFACE), part.join(ADAPTER));
    let config = HfConfig::read(&huggingface)?;
    let source = Source::find(&huggingface, &adapter, form.base, &config)?;
    write_model(to, &source.tensors(form.dtype)?, form.shard)?;
    let path = to.join("config.json");
    fs::write(&path, config.with_dtype(form.name)?).with_context(|| format!("cannot write {}", path.display()))?;
    copy(&huggingface, to, |name| name != "config.json" && !is_weights(name))
}

/// Returns true for the name of a file that holds or lists weights.
pub(crate) fn is_weights(name: &str) -> bool {
    name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json")
}

/// Copies the files and subfolders whose names `is_copied` accepts.
pub(crate) fn copy(from: &Path, to: &Path, is_copied: impl Fn(&str) -> bool) -> Result<()> {
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let path = entry?.path();
        let name = path.file_name().and_then(OsStr::to_str).with_context(|| format!("{} is not UTF-8", path.display()))?;
        if is_copied(name) {
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
pub(super) struct Source {
    files: WeightFiles,
    adapter: Option<PeftAdapter>,
    /// The matrices that the adapter was trained with in 4 bits.
    rounded: Option<RoundedFiles>,
    /// The head of the base model that the adapter's own head replaces.
    replaced: Option<String>,
}

impl Source {
    pub(super) fn find(huggingface: &Path, adapter: &Path, base: Option<&Path>, config: &HfConfig) -> Result<Self> {
        let merged = ["model.safetensors", "model.safetensors.index.json"].iter().any(|name| huggingface.join(name).exists());
        if merged && base.is_none() {
            return Ok(Self { files: WeightFiles::open(huggingface)?, adapter: None, rounded: None, replaced: None });
        }
        ensure!(adapter.is_dir(), "--base: {} is not an adapter, the checkpoint holds all weights", huggingface.display());
        let mut adapter = PeftAdapter::read(adapter)?;
        let folder = match base {
            Some(base) => base.to_owned(),
            None => complete_model("the adapter's base model", Path::new(&adapter.base))?,
        };
        let files = WeightFiles::open(&folder).with_context(|| {
            format!("the adapter's base model is {}; if it has moved, name its folder with --base", folder.display())
        })?;
        // The keys that the run set to null by override_config, perhaps because they are not known.
        let nulls = config.json.iter().filter(|(_, value)| value.is_null()).map(|(key, value)| (key.clone(), value.clone()));
        let base = HfConfig::read_overridden(&folder, nulls)?.decoder()?;
        let config = config.decoder()?;
        // A run may have extended the model to longer sequences by override_config, and put its weights into 4 bits.
        let DecoderConfig { max_position_embeddings, quantization, .. } = config;
        let same = DecoderConfig { max_position_embeddings, quantization, ..base } == config;
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
        let rounded = Some(RoundedFiles::new(&config, &files)?);
        Ok(Self { files, adapter: Some(adapter), rounded, replaced })
    }

    /// Returns all tensors; each is read only when it is written.
    pub(super) fn tensors(&self, dtype: Dtype) -> Result<Vec<DeferredTensor<'_>>> {
        let own = self.adapter.iter().flat_map(|adapter| &adapter.saved);
        let own = own.map(|(name, (shape, values))| Ok(DeferredTensor::new(name.clone(), shape.clone(), || values.clone())));
        let is_replaced = |name: &String| {
            self.replaced.as_ref() == Some(name) || self.adapter.as_ref().is_some_and(|adapter| adapter.saved.contains_key(name))
        };
        let of_files = self.files.tensors()?.into_iter().filter(|(name, _)| !is_replaced(name));
        let deferred = of_files.map(|(name, view)| -> Result<DeferredTensor> {
            view.check().with_context(|| format!("tensor `{name}`"))?;
            let (shape, of) = (view.shape().to_vec(), name.clone());
            let values = move || {
                let mut values = view.values().unwrap_or_default();
                self.rounded.iter().for_each(|rounded| rounded.round(&of, &mut values));
                self.adapter.iter().for_each(|adapter| adapter.merge(&of, &mut values));
                values
            };
            Ok(DeferredTensor::new(name, shape, values))
        });
        deferred.chain(own).map(|tensor| Ok(tensor?.with_dtype(dtype))).collect()
    }
}
