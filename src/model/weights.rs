//! Reads Hugging Face weights (model.safetensors in one file or in shards with an index, f32, f16 or bf16), in the names and
//! layout of the model's family, into a network; and lists a network's tensors in that form, for [`super::tensor_files`].

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Tensor};
use memmap2::Mmap;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

use super::config::{DecoderConfig, HeadKind};
use super::decoder::Decoder;
use super::naming::Place;
use super::ops::to_host;
use super::tensor_files::Deferred;
use crate::util::contained::caught;
use crate::util::foreign::{self, is_inside};

/// Initial values of the parameters of a head that files do not have, by name and shape.
pub type FreshHead = dyn Fn(&str, &[usize]) -> Vec<f32>;

/// Memory-mapped safetensors files.
pub struct WeightFiles {
    maps: Vec<(PathBuf, Mmap)>,
}

const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";
const PICKLE: &str = "pytorch_model.bin";

/// The file of a folder that holds or lists a model's weights, even in a format that cannot be read here.
pub fn weights_file(folder: &Path) -> Option<String> {
    let known = [SINGLE, INDEX, PICKLE, "pytorch_model.bin.index.json"];
    let known = known.iter().find(|name| folder.join(name).exists()).map(ToString::to_string);
    known.or_else(|| shards(folder).into_iter().next())
}

/// The files of a folder that look like shards.
fn shards(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("model-") && name.ends_with(".safetensors")).collect();
    names.sort();
    names
}

impl WeightFiles {
    /// Opens `model.safetensors`, or the shards that `model.safetensors.index.json` names.
    pub fn open(folder: &Path) -> Result<Self> {
        let (single, index) = (folder.join(SINGLE), folder.join(INDEX));
        let names = if foreign::is_there(&single)? {
            vec![single]
        } else if foreign::is_there(&index)? {
            let text = foreign::read_text(&index, foreign::SETTINGS)?;
            let json: serde_json::Value = serde_json::from_str(&text).with_context(|| format!("{}", index.display()))?;
            let map = json["weight_map"].as_object().with_context(|| format!("{} has no weight_map", index.display()))?;
            let mut shards: Vec<&str> = map.values().filter_map(|v| v.as_str()).collect();
            shards.sort_unstable();
            shards.dedup();
            if let Some(outside) = shards.iter().find(|name| !is_inside(name)) {
                bail!("{}: weight_map names {outside:?}: shards are files in this folder", index.display());
            }
            shards.iter().map(|s| folder.join(s)).collect()
        } else if let Some(shard) = shards(folder).first() {
            bail!("{} holds {shard} and no {INDEX}, which lists the shards and what is in them: copy it too", folder.display());
        } else if folder.join(PICKLE).exists() {
            bail!(
                "{} holds pytorch_model.bin, a Python pickle, which is not read here; convert it with transformers' \
                 save_pretrained(…, safe_serialization=True)",
                folder.display()
            );
        } else {
            bail!(
                "{} has no model.safetensors; to start from its config.json with random weights, set the model's `init` \
                 to `random`",
                folder.display()
            );
        };
        Self::map(names)
    }

    /// Opens one file.
    pub fn of_file(path: &Path) -> Result<Self> {
        Self::map(vec![path.to_owned()])
    }

    fn map(paths: Vec<PathBuf>) -> Result<Self> {
        let maps = paths.into_iter().map(|path| {
            let file = foreign::open(&path)?;
            // SAFETY: the map is read once at start-up; changing a checkpoint while it loads is as undefined as in any loader.
            let map = unsafe { Mmap::map(&file) }.with_context(|| format!("cannot map {}", path.display()))?;
            Ok((path, map))
        });
        Ok(Self { maps: maps.collect::<Result<_>>()? })
    }

    /// All tensors by name, as views of the files.
    pub fn tensors(&self) -> Result<BTreeMap<String, TensorView<'_>>> {
        let mut all = BTreeMap::new();
        for (path, map) in &self.maps {
            let parsed = caught(|| SafeTensors::deserialize(map)).with_context(|| path.display().to_string())?;
            let parsed = parsed.with_context(|| format!("{} is damaged", path.display()))?;
            all.extend(parsed.tensors());
        }
        Ok(all)
    }

    /// The tensors that are parameters of `config`. Left out are copies that transformers itself leaves out, a tied head, buffers
    /// of masks and rotations, and the head of a language model where another takes its place.
    pub fn parameters(&self, config: &DecoderConfig) -> Result<BTreeMap<String, TensorView<'_>>> {
        let mut tensors = self.tensors()?;
        let head = config.naming.place("lm_head.weight").name;
        let copy = |name: &str| {
            config.naming.buffers.iter().any(|end| format!(".{name}").ends_with(end))
                || (name == head && (config.tie_word_embeddings || config.head != HeadKind::Language))
        };
        tensors.retain(|name, _| !copy(name));
        Ok(tensors)
    }

    /// Builds the network of `config` with these weights. Every parameter must be there, except those of the head where
    /// `fresh_head` gives them, and no unknown tensor may be.
    pub fn build(&self, config: &DecoderConfig, fresh_head: Option<&FreshHead>, device: &Device) -> Result<Decoder> {
        let tensors = self.parameters(config)?;
        let origin = self.maps.first().map(|(path, _)| path.display().to_string()).unwrap_or_default();
        let mut used = BTreeSet::new();
        let net = Decoder::build(config, device, &mut |parameter, shape| {
            if let Some(fresh) = fresh_head.filter(|_| parameter.starts_with("lm_head.")) {
                return Ok(fresh(parameter, shape));
            }
            let place = config.place(parameter);
            let name = found(&tensors, &place.name, parameter)
                .with_context(|| format!("{origin}: tensor `{}` is missing", place.name))?;
            used.insert(name);
            let (view, wanted) = (&tensors[name], place.shape(shape));
            if view.shape() != wanted {
                bail!("{origin}: tensor `{name}` is {:?}, config.json makes it {wanted:?}", view.shape());
            }
            let values = to_f32(view).with_context(|| format!("{origin}: tensor `{name}`"))?;
            Ok(place.from_file(values, shape, config))
        })?;
        if let Some(name) = tensors.keys().find(|name| !used.contains(name)) {
            bail!("{origin}: tensor `{name}` has no place in this model; is model_type in config.json right?");
        }
        Ok(net)
    }
}

/// The name under which a file holds a tensor. Models saved without their head leave out the first part of each name;
/// transformers 5 writes some tensors under the decoder's own name.
pub fn found<'a>(tensors: &'a BTreeMap<String, TensorView>, name: &str, parameter: &str) -> Option<&'a String> {
    let bare = name.split_once('.').map(|(_, rest)| rest);
    [Some(name), bare, Some(parameter)].into_iter().flatten().find_map(|name| tensors.get_key_value(name)).map(|(name, _)| name)
}

/// Reads every tensor of one safetensors file, as f32.
pub fn read_safetensors(path: &Path) -> Result<BTreeMap<String, Vec<f32>>> {
    let file = WeightFiles::of_file(path)?;
    let read = |(name, view): (String, TensorView)| {
        let values = numbers(&view, 0..count(&view)).with_context(|| format!("{}: tensor `{name}`", path.display()))?;
        Ok((name, values))
    };
    file.tensors()?.into_iter().map(read).collect()
}

/// A tensor's values as f32.
pub fn to_f32(view: &TensorView) -> Result<Vec<f32>> {
    converted(view.dtype(), view.data())
}

/// How many numbers a tensor has.
pub fn count(view: &TensorView) -> usize {
    view.shape().iter().product()
}

/// A run of a tensor's numbers, in row-major order, as f32; bytes are numbers, too.
///
/// # Errors
/// If the tensor is of another dtype than f32, f16, bf16 or u8, even where the run is empty.
///
/// # Panics
/// If the run goes beyond the tensor.
pub fn numbers(view: &TensorView, run: Range<usize>) -> Result<Vec<f32>> {
    let (dtype, width) = (view.dtype(), view.dtype().bitsize() / 8);
    let bytes = &view.data()[run.start * width..run.end * width];
    if dtype == Dtype::U8 { Ok(bytes.iter().map(|byte| f32::from(*byte)).collect()) } else { converted(dtype, bytes) }
}

fn converted(dtype: Dtype, bytes: &[u8]) -> Result<Vec<f32>> {
    let halves = || bytes.chunks_exact(2).map(|b| u16::from_le_bytes([b[0], b[1]]));
    Ok(match dtype {
        Dtype::F32 => bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(),
        Dtype::BF16 => halves().map(|x| f32::from_bits((x as u32) << 16)).collect(),
        Dtype::F16 => halves().map(|x| burn::tensor::f16::from_bits(x).to_f32()).collect(),
        other => bail!("dtype {other:?} is not supported; save the model as f32, f16 or bf16"),
    })
}

/// Every parameter of a network in the form of its family's files, without adapters.
pub fn file_tensors<'a>(net: &Decoder, config: &'a DecoderConfig) -> Vec<Deferred<'a>> {
    /// A tensor, and the parameters it consists of.
    type Parts = Vec<(Place, Vec<usize>, Values)>;
    let mut all: Vec<(String, Vec<usize>, Parts)> = Vec::new();
    visit(net, &mut |parameter, shape, _, values| {
        if is_adapter(&parameter) {
            return;
        }
        let place = config.place(&parameter);
        let at = all.iter().position(|(name, ..)| *name == place.name).unwrap_or_else(|| {
            all.push((place.name.clone(), place.shape(&shape), Vec::new()));
            all.len() - 1
        });
        all[at].2.push((place, shape, values));
    });
    let tensor = |(name, whole, parts): (String, Vec<usize>, Parts)| {
        let elements = whole.iter().product();
        Deferred::new(name, whole, move || {
            let mut tensor = vec![0.0; elements];
            parts.iter().for_each(|(place, shape, values)| place.into_file(&values(), shape, config, &mut tensor));
            tensor
        })
    };
    all.into_iter().map(tensor).collect()
}

/// True if a parameter is a factor of an adapter.
fn is_adapter(parameter: &str) -> bool {
    [".lora.a", ".lora.b", "_lora.a", "_lora.b"].iter().any(|end| parameter.ends_with(end))
}

/// The shape of every parameter that is trained.
pub fn trained_shapes(net: &Decoder) -> BTreeMap<String, Vec<usize>> {
    let mut all = BTreeMap::new();
    visit(net, &mut |name, shape, trained, _| {
        if trained {
            all.insert(name, shape);
        }
    });
    all
}

/// A function that returns the values of a parameter.
pub(crate) type Values = Box<dyn Fn() -> Vec<f32>>;

/// A function that receives a parameter's name, its shape, true if it is trained, and a function that returns its values.
pub(crate) type See<'a> = &'a mut dyn FnMut(String, Vec<usize>, bool, Values);

/// Shows every parameter to `see`.
pub(crate) fn visit(net: &Decoder, see: See) {
    struct Visitor<'a>(Vec<String>, See<'a>);
    impl ModuleVisitor for Visitor<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let (trained, tensor) = (param.val().is_require_grad(), param.val().inner());
            (self.1)(self.0.join("."), tensor.dims().to_vec(), trained, Box::new(move || to_host(tensor.clone())));
        }
        fn enter_module(&mut self, name: &str, _: &str) {
            self.0.push(name.to_owned());
        }
        fn exit_module(&mut self, _: &str, _: &str) {
            self.0.pop();
        }
    }
    net.visit(&mut Visitor(Vec::new(), see));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_readable_weights_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let error = || WeightFiles::open(folder.path()).map(|_| ()).unwrap_err().to_string();
        assert!(weights_file(folder.path()).is_none() && error().contains("set the model's `init` to `random`"), "{}", error());
        let shard = "model-00001-of-00002.safetensors";
        for (file, says) in [("pytorch_model.bin", "Python pickle"), (shard, "no model.safetensors.index.json, which lists")] {
            std::fs::write(folder.path().join(file), "").unwrap();
            assert!(weights_file(folder.path()).is_some() && error().contains(says), "{}", error());
        }
    }
}
