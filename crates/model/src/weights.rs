//! Reads Hugging Face weights into a network: model.safetensors, or shards with an index, in f32, f16, bf16 or 8 bits, in the names and
//! layout of the model's family. Also lists a network's tensors in that form, for [`super::tensor_files`].

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Tensor};
use memmap2::Mmap;
use safetensors::SafeTensors;
use safetensors::tensor::TensorView;

use super::config::DecoderConfig;
use super::decoder::Decoder;
use super::experts::{FileExperts, PutValues, read_experts, written_experts};
use super::ops::to_host;
use super::skipped_tensors::{SkippedTensor, skip_tensors};
use super::tensor_files::DeferredTensor;
use super::tensor_values::{Values, count, name_in_files, numbers};
use super::untied_head::{are_equal, embedding_names, head_names};
use super::weight_tensor::{SCALES, Tensors, WeightTensor, block_in};
use burnish_util::contained::caught;
use burnish_util::foreign::{self, is_inside};

/// Initial values, by name and shape, of the parameters of a head that is not in the files.
pub(crate) type FreshHead = dyn Fn(&str, &[usize]) -> Vec<f32>;

/// Memory-mapped safetensors files.
pub struct WeightFiles {
    maps: Vec<(PathBuf, Mmap)>,
    /// Rows and columns of the blocks of matrices in 8 bits.
    block: [usize; 2],
}

const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";
const PICKLE: &str = "pytorch_model.bin";

/// The file of a folder that holds or lists a model's weights, even in an unsupported format.
pub fn weights_file(folder: &Path) -> Option<String> {
    let usual = [SINGLE, INDEX, PICKLE, "pytorch_model.bin.index.json"];
    let usual = usual.iter().find(|name| folder.join(name).exists()).map(ToString::to_string);
    usual.or_else(|| shards(folder).into_iter().next())
}

/// The files of a folder whose names look like shards.
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
            let shard = |(tensor, file): (&String, &serde_json::Value)| match file.as_str() {
                Some(file) if is_inside(file) => Ok((tensor.clone(), folder.join(file))),
                _ => bail!("{}: weight_map names {file}: shards are files in this folder", index.display()),
            };
            return Self::sharded(&index, &map.into_iter().map(shard).collect::<Result<_>>()?, block_in(folder)?);
        } else if let Some(shard) = shards(folder).first() {
            bail!("{} holds {shard} but no {INDEX}, which lists the shards and their tensors: copy it too", folder.display());
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
        Self::map(names, block_in(folder)?)
    }

    /// Opens the shards of an index, which maps each tensor's name to its file.
    fn sharded(index: &Path, map: &BTreeMap<String, PathBuf>, block: [usize; 2]) -> Result<Self> {
        let paths: BTreeSet<&PathBuf> = map.values().collect();
        let files = Self::map(paths.into_iter().cloned().collect(), block)?;
        for (path, bytes) in &files.maps {
            let held = parsed(path, bytes)?;
            let of_shard = map.iter().filter(|(_, shard)| *shard == path);
            if let Some((tensor, _)) = of_shard.into_iter().find(|(tensor, _)| held.tensor(tensor).is_err()) {
                bail!(
                    "{} says that {} holds tensor `{tensor}`, but it does not: are both files of one model?",
                    index.display(),
                    path.display()
                );
            }
        }
        Ok(files)
    }

    /// The files of a folder that look like shards but are not read.
    pub(super) fn unread(&self, folder: &Path) -> Vec<String> {
        let is_read = |name: &String| self.maps.iter().any(|(path, _)| path.ends_with(name));
        shards(folder).into_iter().filter(|name| !is_read(name)).collect()
    }

    /// Opens one file.
    pub fn open_file(path: &Path) -> Result<Self> {
        Self::map(vec![path.to_owned()], block_in(path.parent().unwrap_or(path))?)
    }

    fn map(paths: Vec<PathBuf>, block: [usize; 2]) -> Result<Self> {
        let maps = paths.into_iter().map(|path| {
            let file = foreign::open(&path)?;
            // SAFETY: the map is read once at start-up. Changing a checkpoint while it is loaded is undefined behaviour, as in
            // any loader.
            let map = unsafe { Mmap::map(&file) }.with_context(|| format!("cannot map {}", path.display()))?;
            Ok((path, map))
        });
        Ok(Self { maps: maps.collect::<Result<_>>()?, block })
    }

    /// All tensors by name, as views of the files. Scales belong to their tensors.
    pub fn tensors(&self) -> Result<Tensors<'_>> {
        let mut all = Tensors::new();
        for (path, map) in &self.maps {
            for (name, tensor) in parsed(path, map)?.tensors() {
                let name = of_language_model(name);
                if all.get(&name).is_some_and(|other| !are_equal(other, &tensor)) {
                    bail!("{}: tensor `{name}` is in another shard too, with other values: remove one of them", path.display());
                }
                all.insert(name, WeightTensor::new(tensor));
            }
        }
        let in_8_bits: Vec<String> =
            all.iter().filter(|(_, tensor)| tensor.is_in_8_bits()).map(|(name, _)| name.clone()).collect();
        for name in in_8_bits {
            let Some(scales) = all.remove(&format!("{name}{SCALES}")) else { continue };
            all.entry(name).and_modify(|tensor| *tensor = tensor.clone().with_scales(scales, self.block));
        }
        Ok(all)
    }

    /// All tensors under the names that they have in the files.
    pub fn originals(&self) -> Result<Vec<(String, TensorView<'_>)>> {
        let mut all = Vec::new();
        for (path, map) in &self.maps {
            all.extend(parsed(path, map)?.tensors());
        }
        Ok(all)
    }

    /// The tensors that are parameters of `config`. Not included are copies that transformers skips too, a tied head, buffers of
    /// masks and rotations, and a language model's head that another head replaces. If the embedding is missing, a tied head
    /// serves as the embedding, as in transformers 5.
    pub fn parameters(&self, config: &DecoderConfig) -> Result<Tensors<'_>> {
        Ok(self.parameters_and_others(config)?.0)
    }

    /// Like [`parameters`](Self::parameters), with messages about skipped tensors that differ from the computed values.
    fn parameters_and_others(&self, config: &DecoderConfig) -> Result<(Tensors<'_>, Vec<(SkippedTensor, String)>)> {
        let mut tensors = self.tensors()?;
        let embedding = embedding_names(config.naming);
        if config.tie_word_embeddings && !embedding.iter().any(|name| tensors.contains_key(name)) {
            let head = head_names(config.naming).iter().find_map(|name| tensors.remove(name));
            tensors.extend(head.map(|head| (embedding[0].clone(), head)));
        }
        let others = skip_tensors(&mut tensors, config);
        Ok((tensors, others))
    }

    /// Builds the network of `config` with these weights. Every parameter must exist in the files, except the parameters of the
    /// head that `fresh_head` gives. Unknown tensors are errors.
    pub fn build(&self, config: &DecoderConfig, fresh_head: Option<&FreshHead>, device: &Device) -> Result<Decoder> {
        let origin = self.maps.first().map(|(path, _)| path.display().to_string()).unwrap_or_default();
        let (tensors, others) = self.parameters_and_others(config)?;
        for (kind, other) in others {
            match kind {
                SkippedTensor::Head => tracing::info!("{origin}: {other}"),
                _ => tracing::warn!("{origin}: {other}"),
            }
        }
        let mut used = BTreeSet::new();
        let net = Decoder::build(config, device, &mut |parameter, shape| {
            if let Some(fresh) = fresh_head.filter(|_| parameter.starts_with("lm_head.")) {
                return Ok(fresh(parameter, shape));
            }
            if let Some(experts) = FileExperts::of(parameter) {
                let (names, values) = read_experts(&tensors, experts, shape, config).with_context(|| origin.clone())?;
                used.extend(names);
                return Ok(values);
            }
            let place = config.place(parameter);
            let name = name_in_files(&tensors, &place.name, parameter)
                .with_context(|| format!("{origin}: tensor `{}` is missing", place.name))?;
            used.insert(name);
            let (view, expected) = (&tensors[name], place.shape(shape, config));
            if view.shape() != expected {
                bail!("{origin}: tensor `{name}` is {:?}, config.json makes it {expected:?}", view.shape());
            }
            let values = view.finite_values().with_context(|| format!("{origin}: tensor `{name}`"))?;
            Ok(place.from_file(values, shape, config))
        })?;
        if let Some(name) = tensors.keys().find(|name| !used.contains(name)) {
            bail!("{origin}: tensor `{name}` has no place in this model; is model_type in config.json right?");
        }
        Ok(net)
    }
}

/// The name of a language model's tensor without the prefix that a model of images and text puts before it.
pub fn of_language_model(name: String) -> String {
    match (name.strip_prefix("model.language_model."), name.strip_prefix("language_model.")) {
        (Some(rest), _) => format!("model.{rest}"),
        (_, Some(rest)) => rest.to_owned(),
        _ => name,
    }
}

/// Parses the tensors of a file from its bytes.
fn parsed<'a>(path: &Path, bytes: &'a [u8]) -> Result<SafeTensors<'a>> {
    let parsed = caught(|| SafeTensors::deserialize(bytes)).with_context(|| path.display().to_string())?;
    parsed.with_context(|| format!("{} is damaged", path.display()))
}

/// Reads every tensor of one safetensors file, as f32.
pub fn read_safetensors(path: &Path) -> Result<BTreeMap<String, Vec<f32>>> {
    let file = WeightFiles::open_file(path)?;
    let read = |(name, view): (String, WeightTensor)| {
        let all = 0..count(&view);
        let values = if view.is_in_8_bits() { view.values() } else { numbers(&view, all) };
        let values = values.with_context(|| format!("{}: tensor `{name}`", path.display()))?;
        Ok((name, values))
    };
    file.tensors()?.into_iter().map(read).collect()
}

/// All parameters of a network, without adapters, in the form of its family's files.
pub fn file_tensors<'a>(net: &Decoder, config: &'a DecoderConfig) -> Vec<DeferredTensor<'a>> {
    /// Functions that write the parameters that a tensor consists of.
    type Parts<'a> = Vec<PutValues<'a>>;
    let mut all: Vec<(String, Vec<usize>, Parts<'a>)> = Vec::new();
    let mut places = HashMap::new();
    let mut add = |name: String, shape: Vec<usize>, part: PutValues<'a>| {
        let at = *places.entry(name).or_insert_with_key(|name| {
            all.push((name.clone(), shape, Vec::new()));
            all.len() - 1
        });
        all[at].2.push(part);
    };
    visit(net, &mut |parameter, shape, _, values| {
        if is_adapter(&parameter) {
            return;
        }
        if let Some(experts) = FileExperts::of(&parameter) {
            let tensors = written_experts(experts, &shape, values, config);
            return tensors.into_iter().for_each(|tensor| add(tensor.name, tensor.shape, tensor.put));
        }
        let place = config.place(&parameter);
        let (name, whole) = (place.name.clone(), place.shape(&shape, config));
        add(name, whole, Box::new(move |tensor| place.into_file(&values.all(), &shape, config, tensor)));
    });
    let tensor = |(name, whole, parts): (String, Vec<usize>, Parts<'a>)| {
        let elements = whole.iter().product();
        DeferredTensor::new(name, whole, move || {
            let mut tensor = vec![0.0; elements];
            parts.iter().for_each(|put| put(&mut tensor));
            tensor
        })
    };
    all.into_iter().map(tensor).collect()
}

/// True if a parameter is a factor of an adapter.
fn is_adapter(parameter: &str) -> bool {
    [".lora.a", ".lora.b", "_lora.a", "_lora.b"].iter().any(|end| parameter.ends_with(end))
}

/// The shape of every trained parameter.
pub fn trained_shapes(net: &Decoder) -> BTreeMap<String, Vec<usize>> {
    let mut all = BTreeMap::new();
    visit(net, &mut |name, shape, trained, _| {
        if trained {
            all.insert(name, shape);
        }
    });
    all
}

/// A function that receives a parameter's name, its shape, whether it is trained, and its values.
pub(crate) type OnParameter<'a> = &'a mut dyn FnMut(String, Vec<usize>, bool, Values);

/// Calls `see` for every parameter, and for the values of every matrix in 4 bits.
pub fn visit(net: &Decoder, see: OnParameter) {
    struct Visitor<'a>(Vec<String>, OnParameter<'a>);
    impl ModuleVisitor for Visitor<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let (trained, tensor) = (param.val().is_require_grad(), param.val().inner());
            let shape = tensor.dims().to_vec();
            let values = move |row: Option<usize>| match row {
                None => to_host(tensor.clone()),
                Some(row) => to_host(tensor.clone().narrow(0, row, 1)),
            };
            (self.1)(self.0.join("."), shape, trained, Values::new(values));
        }
        fn enter_module(&mut self, name: &str, _: &str) {
            self.0.push(name.to_owned());
        }
        fn exit_module(&mut self, _: &str, _: &str) {
            self.0.pop();
        }
    }
    net.visit(&mut Visitor(Vec::new(), &mut *see));
    for (name, matrix) in net.quantised() {
        let (shape, matrix) = (matrix.shape(), matrix.clone());
        let values = move |row: Option<usize>| match row {
            None => matrix.read().values(),
            Some(row) => {
                let mut values = vec![0.0; shape[1]];
                matrix.read().read_rows(row..row + 1, &mut values);
                values
            }
        };
        see(name, shape.to_vec(), false, Values::new(values));
    }
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
