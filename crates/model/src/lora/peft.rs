//! Adapters in files, in PEFT's layout: `adapter_config.json` and `adapter_model.safetensors` with
//! `base_model.model.<module>.lora_A.weight` [r, in] and `lora_B.weight` [out, r].

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use rayon::prelude::*;
use safetensors::SafeTensors;
use serde_json::{Map, Value, json};

use super::targets::linears;
use crate::config::DecoderConfig;
use crate::memory::ElementCount;
use crate::tensor_files::{DeferredTensor, write_safetensors};
use crate::tensor_values::{finite_f32, name_in_files};
use crate::weights::WeightFiles;
use burnish_util::foreign;
use burnish_util::fs::write_json;

pub const CONFIG: &str = "adapter_config.json";
pub const WEIGHTS: &str = "adapter_model.safetensors";

/// An adapter as PEFT's files hold it.
#[derive(Clone, Debug, PartialEq)]
pub struct PeftAdapter {
    pub rank: usize,
    pub alpha: f64,
    /// The folder of the base model, or its name on the Hub with the commit.
    pub base: String,
    /// True if the base model's files hold the matrices as [in, out].
    pub transposed: bool,
    /// The factors of each adapted module, by the module's path.
    pub factors: BTreeMap<String, Factors>,
    /// Trained parameters other than the factors, by name (PEFT's `modules_to_save`).
    pub saved: BTreeMap<String, ShapedValues>,
}

/// Shape and values of a tensor.
pub(crate) type ShapedValues = (Vec<usize>, Vec<f32>);

/// The two factors of one module.
#[derive(Clone, Debug, PartialEq)]
pub struct Factors {
    pub input: usize,
    pub output: usize,
    /// [r, in]
    pub a: Vec<f32>,
    /// [out, r]
    pub b: Vec<f32>,
}

/// Keys of adapter_config.json without effect here: the tensors themselves show which modules are adapted. Any other key that is
/// not read below must be off.
const WITHOUT_EFFECT: &[&str] = &[
    "auto_mapping",
    "peft_version",
    "revision",
    "inference_mode",
    "task_type",
    "target_modules",
    "exclude_modules",
    "layers_to_transform",
    "layers_pattern",
    "modules_to_save",
    "fan_in_fan_out",
    "megatron_core",
    "qalora_group_size",
    "runtime_config",
];

/// Values of `init_lora_weights` that keep the base model's weights unchanged.
const INITS: &[&str] = &["gaussian", "eva", "orthogonal"];

impl PeftAdapter {
    /// The number of parameters in the factors.
    pub fn num_parameters(&self) -> usize {
        self.factors.values().map(|factors| factors.a.len() + factors.b.len()).sum()
    }

    /// Returns the shape of each factor, with a typical name and a count.
    pub fn shapes(&self) -> Vec<(&'static str, Vec<usize>, ElementCount)> {
        let shapes = |factors: &Factors| [vec![self.rank, factors.input], vec![factors.output, self.rank]];
        self.factors.values().flat_map(shapes).map(|shape| ("model.layers.0.lora", shape, 1)).collect()
    }

    /// The factor on the product of the two matrices.
    pub fn scale(&self) -> f64 {
        self.alpha / self.rank as f64
    }

    /// Reads an adapter's folder.
    ///
    /// # Errors
    /// If the folder holds no LoRA adapter, or the adapter uses a feature beyond LoRA; the message names it.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(CONFIG);
        let text = foreign::read_text(&path, foreign::SETTINGS).context("no adapter")?;
        let config: Map<String, Value> =
            serde_json::from_str(&text).with_context(|| format!("{} is not a JSON object", path.display()))?;
        let mut adapter = Self::of_config(&config).with_context(|| format!("{}", path.display()))?;
        let path = folder.join(WEIGHTS);
        if !path.exists() && folder.join("adapter_model.bin").exists() {
            bail!(
                "{} holds adapter_model.bin, a Python pickle, which is not read here: save it again with PEFT",
                folder.display()
            );
        }
        let bytes = foreign::read(&path, u64::MAX - 1)?;
        adapter.read_tensors(&bytes).with_context(|| format!("{}", path.display()))?;
        Ok(adapter)
    }

    fn of_config(config: &Map<String, Value>) -> Result<Self> {
        let get = |key: &str| config.get(key).filter(|value| !value.is_null());
        ensure!(
            get("peft_type") == Some(&json!("LORA")),
            "peft_type must be LORA, not {}",
            get("peft_type").unwrap_or(&Value::Null)
        );
        let rank = get("r").and_then(Value::as_u64).filter(|r| *r > 0).context("`r` must be a positive integer")?;
        let alpha = get("lora_alpha").and_then(Value::as_f64).context("`lora_alpha` must be a number")?;
        let base = get("base_model_name_or_path").and_then(Value::as_str).unwrap_or_default().to_owned();
        let commit =
            get("revision").and_then(Value::as_str).filter(|commit| is_commit(commit) && !Path::new(&base).is_absolute());
        let base = commit.map_or_else(|| base.clone(), |commit| format!("{base}@{commit}"));
        for (key, value) in config {
            let fine = match key.as_str() {
                "peft_type" | "r" | "lora_alpha" | "base_model_name_or_path" => true,
                "lora_dropout" => {
                    if value.as_f64().is_some_and(|p| p > 0.0) {
                        tracing::warn!("the adapter's lora_dropout {value} is ignored: dropout is not applied");
                    }
                    true
                }
                "bias" => value == "none" || value.is_null(),
                "init_lora_weights" => value.is_boolean() || value.as_str().is_none_or(|way| INITS.contains(&way)),
                key => WITHOUT_EFFECT.contains(&key) || is_off(value),
            };
            ensure!(fine, "`{key}`: {value} is not supported: only plain LoRA is supported");
        }
        let (factors, saved) = Default::default();
        Ok(Self { rank: rank as usize, alpha, base, transposed: false, factors, saved })
    }

    fn read_tensors(&mut self, bytes: &[u8]) -> Result<()> {
        let parsed = SafeTensors::deserialize(bytes).context("damaged")?;
        let mut halves: BTreeMap<String, [Option<ShapedValues>; 2]> = BTreeMap::new();
        for (name, view) in parsed.tensors() {
            let values = finite_f32(&view).with_context(|| format!("tensor `{name}`"))?;
            let tensor = (view.shape().to_vec(), values);
            let path =
                name.strip_prefix("base_model.model.").with_context(|| format!("`{name}` is not a tensor of an adapter"))?;
            let factor = [".lora_A.weight", ".lora_B.weight"].into_iter().enumerate();
            match factor.filter_map(|(which, end)| Some((which, path.strip_suffix(end)?))).next() {
                Some((which, module)) => halves.entry(module.to_owned()).or_default()[which] = Some(tensor),
                None if path.contains("lora_") => bail!("`{name}` is not supported: only linear layers are adapted"),
                None => _ = self.saved.insert(path.to_owned(), tensor),
            }
        }
        for (module, halves) in halves {
            let [Some((a_shape, a)), Some((b_shape, b))] = halves else { bail!("{module} has only one of its two factors") };
            let (&[r, input], &[output, s]) = (&a_shape[..], &b_shape[..]) else { bail!("{module}: factors must be matrices") };
            ensure!([r, s] == [self.rank; 2], "{module}: the factors have rank {r} and {s}, {CONFIG} says {}", self.rank);
            self.factors.insert(module, Factors { input, output, a, b });
        }
        ensure!(!self.factors.is_empty(), "the file holds no factors");
        Ok(())
    }

    /// Refuses to resume from an adapter with another shape or another base model.
    pub fn check_same_kind(&self, saved: &Self) -> Result<()> {
        ensure!(saved.rank == self.rank, "lora_rank: {} is saved, this run has {}", saved.rank, self.rank);
        ensure!(saved.alpha == self.alpha, "lora_alpha: {} is saved, this run has {}", saved.alpha, self.alpha);
        let odd = |a: &Self, b: &Self| a.factors.keys().find(|module| !b.factors.contains_key(*module)).cloned();
        if let Some(module) = odd(saved, self).or_else(|| odd(self, saved)) {
            bail!("target_modules: {module} is adapted in the saved adapter or in this run, but not in both");
        }
        if saved.base != self.base {
            tracing::warn!("the adapter was trained on the model in {}, this run has {}", saved.base, self.base);
        }
        Ok(())
    }

    /// Writes a folder that PEFT loads. The caller makes the write atomic (see `util::fs`).
    pub fn write(&self, folder: &Path) -> Result<()> {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        // PEFT stores alpha as an integer.
        let alpha = if self.alpha.fract() == 0.0 { json!(self.alpha as i64) } else { json!(self.alpha) };
        let mut saved_modules: Vec<&str> = self.saved.keys().filter_map(|name| Some(name.rsplit_once('.')?.0)).collect();
        saved_modules.dedup();
        let (base, revision) = base_and_revision(&self.base);
        let mut config = json!({
            "peft_type": "LORA",
            // A token classifier's head has a bias, a sequence classifier's head does not.
            "task_type": match saved_modules.is_empty() {
                true => "CAUSAL_LM",
                false if self.saved.keys().any(|name| name.ends_with(".bias")) => "TOKEN_CLS",
                false => "SEQ_CLS",
            },
            "modules_to_save": if saved_modules.is_empty() { Value::Null } else { json!(saved_modules) },
            "base_model_name_or_path": base,
            "r": self.rank,
            "lora_alpha": alpha,
            "lora_dropout": 0.0,
            "bias": "none",
            "target_modules": self.factors.keys().collect::<Vec<_>>(),
            "fan_in_fan_out": self.transposed,
            "init_lora_weights": true,
            "inference_mode": true,
        });
        if let Some(revision) = revision {
            config["revision"] = json!(revision);
        }
        write_json(&folder.join(CONFIG), &config)?;
        let mut tensors = Vec::new();
        for (path, factors) in &self.factors {
            let Factors { input, output, a, b } = factors;
            let name = |which| format!("base_model.model.{path}.lora_{which}.weight");
            tensors.push(DeferredTensor::new(name("A"), vec![self.rank, *input], || a.clone()));
            tensors.push(DeferredTensor::new(name("B"), vec![*output, self.rank], || b.clone()));
        }
        for (name, (shape, values)) in &self.saved {
            tensors.push(DeferredTensor::new(format!("base_model.model.{name}"), shape.clone(), || values.clone()));
        }
        write_safetensors(&folder.join(WEIGHTS), &tensors)
    }

    /// Checks an adapter against the files of its base model, and renames its modules to the names in those files.
    pub fn name_as_in(&mut self, files: &WeightFiles, config: &DecoderConfig) -> Result<()> {
        let tensors = files.tensors()?;
        self.transposed = config.naming.transposed;
        for target in linears(config) {
            let Some(factors) = self.factors.remove(&target.path) else { continue };
            let parameter = format!("{}.weight", target.name);
            let name = name_in_files(&tensors, &format!("{}.weight", target.path), &parameter)
                .with_context(|| format!("tensor `{}.weight` is missing", target.path))?;
            let shape = if self.transposed { [factors.input, factors.output] } else { [factors.output, factors.input] };
            ensure!(tensors[name].shape() == shape, "tensor `{name}` is {:?}, the adapter's {shape:?}", tensors[name].shape());
            let module = name.strip_suffix(".weight").unwrap_or(name).to_owned();
            self.factors.insert(module, factors);
        }
        if let Some(module) = self.factors.keys().find(|module| !tensors.contains_key(&format!("{module}.weight"))) {
            bail!("it has no module {module}");
        }
        Ok(())
    }

    /// Merges the adapter: adds its term to the values of a tensor of the base model's files.
    pub fn merge(&self, tensor: &str, values: &mut [f32]) {
        let Some(Factors { input, output, a, b }) = tensor.strip_suffix(".weight").and_then(|module| self.factors.get(module))
        else {
            return;
        };
        let (rank, scale) = (self.rank, self.scale() as f32);
        // w[i, ·] += scale · Σ_k left[i, k] · right[k, ·], k in order.
        let (width, left, right) = match self.transposed {
            false => (*input, b.clone(), a.clone()),
            true => (*output, transpose(a, *input), transpose(b, rank)),
        };
        values.par_chunks_exact_mut(width).zip(left.par_chunks_exact(rank)).for_each(|(row, left)| {
            let mut sum = vec![0f32; width];
            for (l, right) in left.iter().zip(right.chunks_exact(width)) {
                sum.iter_mut().zip(right).for_each(|(sum, r)| *sum += l * r);
            }
            row.iter_mut().zip(sum).for_each(|(w, sum)| *w += scale * sum);
        });
    }
}

/// True if a value means that a feature is not used.
fn is_off(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
        _ => false,
    }
}

/// [rows, columns] -> [columns, rows]
fn transpose(x: &[f32], columns: usize) -> Vec<f32> {
    (0..columns).flat_map(|column| x.iter().skip(column).step_by(columns).copied()).collect()
}

/// Returns a folder's absolute path, so that it can be found from any working folder. For a folder in the Hugging Face cache,
/// returns its name on the Hub with the commit: `ORG/NAME@COMMIT`.
pub fn absolute(folder: &Path) -> String {
    let path = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    match parts.as_slice() {
        [.., repo, "snapshots", commit] if repo.starts_with("models--") && is_commit(commit) => {
            format!("{}@{commit}", repo["models--".len()..].replace("--", "/"))
        }
        _ => path.display().to_string(),
    }
}

/// Splits a base model into PEFT's two fields: a folder, or a name on the Hub and its revision.
fn base_and_revision(base: &str) -> (&str, Option<&str>) {
    match base.rsplit_once('@').filter(|(_, commit)| is_commit(commit)) {
        Some((name, commit)) => (name, Some(commit)),
        None => (base, None),
    }
}

fn is_commit(text: &str) -> bool {
    text.len() == 40 && text.bytes().all(|c| c.is_ascii_hexdigit())
}
