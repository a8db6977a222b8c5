//! A file of a teacher's top-k tokens at every trained token: tensors `ids` and `log_probs`, [tokens, k], and in its metadata the
//! teacher, the rows and the temperature.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use burn::tensor::f16;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use sha2::{Digest, Sha256};

use super::example::DistillExample;
use crate::pipelines::sft;
use crate::pipelines::stage::StageExample;
use crate::pipelines::stored_numbers::{CHECKSUM, LOG_PROBS, checksum};
use burnish_config::schema::LogitsDtype;
use burnish_distributed::Ranks;
use burnish_model::TopK;
use burnish_util::foreign;
use burnish_util::fs::write_atomic;

/// The requirements of a run on a file.
pub(super) struct FileRequirements {
    /// Hashes of the tokens and masks of all examples, and of the teacher if the settings name one.
    rows: String,
    teacher: Option<String>,
    temperature: String,
    top_k: Option<usize>,
    vocabulary: usize,
    trained: Vec<Vec<bool>>,
}

impl FileRequirements {
    pub(super) fn new(
        examples: &[&DistillExample],
        teacher: Option<String>,
        temperature: f64,
        top_k: Option<usize>,
        vocabulary: usize,
    ) -> Result<Self> {
        let mut hash = Sha256::new();
        for sequence in examples.iter().flat_map(|example| example.sequences()) {
            hash.update((sequence.len() as u64).to_le_bytes());
            sequence.prompt.iter().chain(sequence.response).for_each(|id| hash.update(id.to_le_bytes()));
        }
        let trained: Vec<Vec<bool>> = examples.iter().map(|example| trained(example)).collect();
        trained.iter().flatten().for_each(|&trained| hash.update([u8::from(trained)]));
        Ok(Self { rows: hex(hash), teacher, temperature: temperature.to_string(), top_k, vocabulary, trained })
    }
}

/// Returns true for each predicted token of an example that is trained.
fn trained(example: &DistillExample) -> Vec<bool> {
    sft::weights(&example.student).iter().map(|&weight| weight != 0.0).collect()
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the hash of a model: its shape and its weights.
///
/// # Errors
/// If a file cannot be read.
pub(super) fn fingerprint(folder: &Path) -> Result<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .with_context(|| format!("cannot read {}", folder.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "safetensors") || path.ends_with("config.json"))
        .collect();
    names.sort();
    let mut hash = Sha256::new();
    for path in names {
        std::io::copy(&mut foreign::open(&path)?, &mut hash).with_context(|| format!("cannot read {}", path.display()))?;
    }
    Ok(hex(hash))
}

/// The teacher's tokens of every example, with neutral entries at untrained tokens.
pub(super) struct StoredTopK {
    trained: Vec<Vec<bool>>,
    /// The index of the first trained token of each example.
    starts: Vec<usize>,
    tokens: TopK,
}

impl StoredTopK {
    /// Creates space for these examples.
    pub(super) fn empty(examples: &[&DistillExample], k: usize) -> Self {
        Self::with_trained(examples.iter().map(|example| trained(example)).collect(), k)
    }

    fn with_trained(trained: Vec<Vec<bool>>, k: usize) -> Self {
        let mut tokens = 0;
        let starts = trained.iter().map(|trained| {
            let start = tokens;
            tokens += trained.iter().filter(|&&trained| trained).count();
            start
        });
        let starts = starts.collect();
        Self { trained, starts, tokens: TopK { k, ids: vec![0; tokens * k], log_probs: vec![f32::NEG_INFINITY; tokens * k] } }
    }

    /// Stores the tokens of these examples; `top` has all their predicted tokens.
    pub(super) fn put(&mut self, examples: &[usize], top: &TopK) {
        let (k, mut from) = (top.k, 0);
        for &example in examples {
            let mut to = self.starts[example];
            for &trained in &self.trained[example] {
                if trained {
                    self.tokens.ids[to * k..(to + 1) * k].copy_from_slice(&top.ids[from * k..(from + 1) * k]);
                    self.tokens.log_probs[to * k..(to + 1) * k].copy_from_slice(&top.log_probs[from * k..(from + 1) * k]);
                    to += 1;
                }
                from += 1;
            }
        }
    }

    /// Collects the tokens that the other ranks stored, each for its `own` examples.
    pub(super) fn gather(&mut self, ranks: &Ranks, own: Vec<usize>) {
        if ranks.is_alone() {
            return;
        }
        let TopK { k, ids, log_probs } = self.examples(&own);
        let all = TopK { k, ids: ranks.concat(ids), log_probs: ranks.concat_f32s(log_probs) };
        self.put(&ranks.concat(own), &all);
    }

    /// Returns the tokens for every predicted token of these examples.
    pub(super) fn examples(&self, examples: &[usize]) -> TopK {
        let k = self.tokens.k;
        let mut part = TopK { k, ..TopK::default() };
        for &example in examples {
            let mut at = self.starts[example];
            for &trained in &self.trained[example] {
                if trained {
                    part.ids.extend_from_slice(&self.tokens.ids[at * k..(at + 1) * k]);
                    part.log_probs.extend_from_slice(&self.tokens.log_probs[at * k..(at + 1) * k]);
                    at += 1;
                } else {
                    part.ids.resize(part.ids.len() + k, 0);
                    part.log_probs.resize(part.log_probs.len() + k, f32::NEG_INFINITY);
                }
            }
        }
        part
    }

    /// Writes the file, whole or not at all. Ids take two bytes where the vocabulary allows it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn write(&self, path: &Path, required: &FileRequirements, dtype: LogitsDtype) -> Result<()> {
        let TopK { k, ids, log_probs } = &self.tokens;
        let shape = vec![ids.len() / k, *k];
        let (ids_dtype, ids): (_, Vec<u8>) = match required.vocabulary <= 1 << 16 {
            true => (Dtype::U16, ids.iter().flat_map(|&id| (id as u16).to_le_bytes()).collect()),
            false => (Dtype::U32, ids.iter().flat_map(|id| id.to_le_bytes()).collect()),
        };
        let (dtype, log_probs): (_, Vec<u8>) = match dtype {
            LogitsDtype::Float32 => (Dtype::F32, log_probs.iter().flat_map(|x| x.to_le_bytes()).collect()),
            LogitsDtype::Float16 => (Dtype::F16, log_probs.iter().flat_map(|&x| f16::from_f32(x).to_le_bytes()).collect()),
        };
        let teacher = required.teacher.clone().unwrap_or_default();
        let checksum = checksum([ids.as_slice(), log_probs.as_slice()]);
        let metadata =
            [("rows", &required.rows), ("teacher", &teacher), ("temperature", &required.temperature), (CHECKSUM, &checksum)];
        let metadata: HashMap<String, String> = metadata.map(|(key, value)| (key.to_owned(), value.clone())).into();
        let tensors = [
            ("ids", TensorView::new(ids_dtype, shape.clone(), &ids)?),
            ("log_probs", TensorView::new(dtype, shape, &log_probs)?),
        ];
        let bytes = safetensors::serialize(tensors, Some(metadata))?;
        write_atomic(path, &bytes)?;
        tracing::info!("wrote {}: {} tokens, {:.1} MB", path.display(), self.tokens.ids.len() / k, bytes.len() as f64 / 1e6);
        Ok(())
    }

    /// Reads a file.
    ///
    /// # Errors
    /// If the file has another format, or belongs to another teacher, other rows, another temperature or another k. If its values
    /// fail the checksum or cannot be a teacher's.
    pub(super) fn read(path: &Path, required: &FileRequirements) -> Result<Self> {
        let name = path.display();
        let remedy = format!("delete {name} to have it written again, with teacher.path");
        let tokens: usize = required.trained.iter().flatten().filter(|&&trained| trained).count();
        let max = (tokens as u64).saturating_mul(required.vocabulary as u64).saturating_mul(8).saturating_add(1 << 20);
        let bytes = foreign::read(path, max)?;
        let damaged = || format!("{name} is not a file of a teacher's tokens, or is damaged; {remedy}");
        let (_, header) = SafeTensors::read_metadata(&bytes).with_context(damaged)?;
        let file = SafeTensors::deserialize(&bytes).with_context(damaged)?;
        let metadata = header.metadata().clone().unwrap_or_default();
        let is = |key: &str, value: &str| metadata.get(key).is_some_and(|found| found == value);
        ensure!(
            is("rows", &required.rows),
            "{name} was written for other rows, or for another tokenizer, template or max_length; {remedy}"
        );
        if let Some(teacher) = &required.teacher {
            ensure!(
                is("teacher", teacher),
                "{name} was written by another teacher than teacher.path; write teacher.path=null to use it nevertheless, or {remedy}"
            );
        }
        ensure!(
            is("temperature", &required.temperature),
            "{name} was written with algorithm.temperature={}, not {}; {remedy}",
            metadata.get("temperature").map_or("?", String::as_str),
            required.temperature
        );
        let (ids, log_probs) = (file.tensor("ids").with_context(damaged)?, file.tensor("log_probs").with_context(damaged)?);
        let Some(sum) = metadata.get(CHECKSUM) else {
            anyhow::bail!("{name} has no checksum, and was written by an earlier version; {remedy}")
        };
        ensure!(checksum([ids.data(), log_probs.data()]) == *sum, "{name}: its values do not match the checksum; {remedy}");
        let &[found, k] = ids.shape() else { anyhow::bail!(damaged()) };
        ensure!(found == tokens && log_probs.shape() == ids.shape() && k >= 1, damaged());
        if let Some(top_k) = required.top_k {
            ensure!(
                k == top_k,
                "{name} has {k} tokens at each position, and teacher.top_k is {top_k}; write teacher.top_k={k}, or {remedy}"
            );
        }
        let mut stored = Self::with_trained(required.trained.clone(), k);
        stored.tokens.ids = match ids.dtype() {
            Dtype::U16 => ids.data().chunks_exact(2).map(|x| u32::from(u16::from_le_bytes([x[0], x[1]]))).collect(),
            Dtype::U32 => ids.data().chunks_exact(4).map(|x| u32::from_le_bytes([x[0], x[1], x[2], x[3]])).collect(),
            _ => anyhow::bail!(damaged()),
        };
        stored.tokens.log_probs = match log_probs.dtype() {
            Dtype::F32 => log_probs.data().chunks_exact(4).map(|x| f32::from_le_bytes([x[0], x[1], x[2], x[3]])).collect(),
            Dtype::F16 => log_probs.data().chunks_exact(2).map(|x| f16::from_le_bytes([x[0], x[1]]).to_f32()).collect(),
            _ => anyhow::bail!(damaged()),
        };
        let fits = stored.tokens.ids.iter().all(|&id| (id as usize) < required.vocabulary) && k <= required.vocabulary;
        ensure!(fits, "{name} has ids beyond the student's vocabulary of {}; {remedy}", required.vocabulary);
        let rounding = if log_probs.dtype() == Dtype::F16 { 1e-2 } else { 1e-3 };
        if let Some((place, what)) = impossible(&stored.tokens, rounding) {
            anyhow::bail!("{name}: of trained token {place}, {what}; {remedy}");
        }
        Ok(stored)
    }
}

/// Returns the first position whose tokens cannot be a teacher's top-k tokens, and the reason. `rounding`: the error of their
/// summed probabilities; half precision keeps a logarithm to 2^-11 of its size. A probability may be 0, but not all at one
/// position.
fn impossible(all: &TopK, rounding: f64) -> Option<(usize, String)> {
    let places = all.ids.chunks_exact(all.k).zip(all.log_probs.chunks_exact(all.k));
    let wrong = |(ids, log_probs): (&[u32], &[f32])| {
        let mut sorted = ids.to_vec();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Some(format!("the token {} occurs twice", twice[0]));
        }
        if let Some(x) = log_probs.iter().find(|x| **x != f32::NEG_INFINITY && !LOG_PROBS.contains(*x)) {
            return Some(format!("{x} is not the logarithm of a probability"));
        }
        let sum: f64 = log_probs.iter().map(|x| f64::from(*x).exp()).sum();
        if sum == 0.0 {
            return Some("all probabilities are 0".to_owned());
        }
        (sum > 1.0 + rounding).then(|| format!("the probabilities sum to {sum}"))
    };
    places.enumerate().find_map(|(place, tokens)| Some((place, wrong(tokens)?)))
}
