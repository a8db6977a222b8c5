//! `trainer export`: the model of a checkpoint as a folder that transformers loads, or its adapter as one that PEFT loads.
//!
//! Tensors go from file to file one by one: the model is never held as a whole.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use safetensors::Dtype;

use crate::checkpoint;
use crate::model::hf_config::HfConfig;
use crate::model::lora::peft::PeftAdapter;
use crate::model::tensor_files::{Deferred, write_model};
use crate::model::weights::{WeightFiles, to_f32};
use crate::optim::learner::{ADAPTER, HUGGINGFACE};
use crate::util::copy::copy_into;
use crate::util::fs::AtomicDir;

/// What is written.
#[derive(Clone, Debug)]
pub enum Form {
    /// The weights, an adapter merged into those of its base model.
    Weights {
        /// As safetensors call it; config.json calls it `name`.
        dtype: Dtype,
        name: &'static str,
        /// Most bytes of a file.
        shard: usize,
        /// The base model's folder, in place of the one that the adapter names.
        base: Option<PathBuf>,
    },
    /// The adapter as it is.
    Adapter,
}

/// A part of a checkpoint that is whole: the folder that holds the actor, the critic or a supervised model.
///
/// # Errors
/// No checkpoint, one that is damaged, or none of that part.
pub fn find_part(path: &Path, part: Option<&str>) -> Result<PathBuf> {
    if let (Err(_), Some(inside)) = (checkpoint::step_of(path), checkpoint::inside(path)) {
        bail!("{inside}");
    }
    let holds_model = |folder: &Path| [HUGGINGFACE, ADAPTER].iter().any(|name| folder.join(name).is_dir());
    let path = fs::canonicalize(path).with_context(|| format!("no checkpoint at {}", path.display()))?;
    // A part may be named itself: its checkpoint is above it.
    let inside = ["actor", "critic"].iter().find(|name| path.file_name() == Some(OsStr::new(name)));
    if let (Some(inside), Some(above)) = (inside, path.parent().filter(|above| checkpoint::step_of(above).is_ok())) {
        ensure!(part.is_none_or(|part| part == *inside), "--part: {} is the {inside} itself", path.display());
        checkpoint::verify(above)?;
        ensure!(holds_model(&path), "{}", without_model(&path));
        return Ok(path);
    }
    checkpoint::verify(&path)?;
    let folder = match part {
        Some(part) => path.join(part),
        None => [path.join("actor"), path.clone()].into_iter().find(|folder| holds_model(folder)).unwrap_or(path),
    };
    ensure!(holds_model(&folder), "{}", without_model(&folder));
    Ok(folder)
}

fn without_model(folder: &Path) -> String {
    match folder.is_dir() {
        true => format!("{} holds no model (perhaps checkpoint.save_contents was set without `model`)", folder.display()),
        false => format!("there is no {}: the checkpoint has no such part", folder.display()),
    }
}

/// Writes a part of a checkpoint to a folder that must not exist, as a whole or not at all.
///
/// # Errors
/// A base model that is not where it was or is another one, and what the file system refuses.
pub fn export(part: &Path, form: &Form, output: &Path) -> Result<()> {
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
    staged.commit()
}

fn is_weights(name: &str) -> bool {
    name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json")
}

/// Copies the files and folders of a folder that are wanted.
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

/// The weights of a part: files, and an adapter that is not merged into them yet.
struct Source {
    files: WeightFiles,
    adapter: Option<PeftAdapter>,
    /// A head of the base model that the adapter's own stands in place of.
    replaced: Option<String>,
}

impl Source {
    fn find(huggingface: &Path, adapter: &Path, base: Option<&Path>, config: &HfConfig) -> Result<Self> {
        let merged = ["model.safetensors", "model.safetensors.index.json"].iter().any(|name| huggingface.join(name).exists());
        if merged && base.is_none() {
            return Ok(Self { files: WeightFiles::open(huggingface)?, adapter: None, replaced: None });
        }
        ensure!(adapter.is_dir(), "--base: {} is no adapter, the checkpoint holds all weights", huggingface.display());
        let mut adapter = PeftAdapter::read(adapter)?;
        let folder = base.map_or_else(|| PathBuf::from(&adapter.base), Path::to_owned);
        let files = WeightFiles::open(&folder).with_context(|| {
            format!("the adapter's base model is {}; if it has moved, name its folder with --base", folder.display())
        })?;
        let config = config.decoder()?;
        let same = HfConfig::read(&folder)?.decoder()? == config;
        ensure!(same, "the model in {} is not the one that was adapted: its config.json is of another", folder.display());
        adapter.name_as_in(&files, &config).with_context(|| format!("the base model in {}", folder.display()))?;
        let head = config.naming.place("lm_head.weight").name;
        let replaced = (!adapter.saved.is_empty()).then_some(head);
        Ok(Self { files, adapter: Some(adapter), replaced })
    }

    /// Every tensor, to be read when it is written.
    fn tensors(&self, dtype: Dtype) -> Result<Vec<Deferred<'_>>> {
        let own = self.adapter.iter().flat_map(|adapter| &adapter.saved);
        let own = own.map(|(name, (shape, values))| Ok(Deferred::new(name.clone(), shape.clone(), || values.clone())));
        let is_replaced = |name: &String| {
            self.replaced.as_ref() == Some(name) || self.adapter.as_ref().is_some_and(|adapter| adapter.saved.contains_key(name))
        };
        let of_files = self.files.tensors()?.into_iter().filter(|(name, _)| !is_replaced(name));
        let deferred = of_files.map(|(name, view)| {
            let known = matches!(view.dtype(), Dtype::F32 | Dtype::F16 | Dtype::BF16);
            ensure!(known, "tensor `{name}` is of dtype {:?}, which is not read here", view.dtype());
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
