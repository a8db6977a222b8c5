//! The file of a reference's log-probabilities: 4 bytes per response, and a description of their inputs.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use safetensors::tensor::{Dtype, TensorView};
use safetensors::{SafeTensors, serialize};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::example::PreferenceExample;
use crate::pipelines::stored_numbers::{CHECKSUM, LOG_PROBS, checksum};
use burnish_distributed::Ranks;
use burnish_model::CausalLm;
use burnish_util::{foreign, no_follow};

/// The name of the file in the folder of a run.
pub(super) const FILE: &str = "reference_log_probs.safetensors";
/// The metadata entry that describes the inputs of the values.
const ENTRY: &str = "computed_of";
/// A size that no such file reaches, in bytes.
const LARGEST: u64 = 1 << 34;

/// The sums of log-probabilities of all responses, example after example.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredLogProbs {
    pub train: Vec<f32>,
    pub val: Vec<f32>,
}

/// The inputs of stored values.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Key {
    /// (name in the file, value, message if it differs)
    parts: Vec<(&'static str, String, &'static str)>,
    train: usize,
    val: usize,
}

impl Key {
    /// Returns the key of a reference with these rows.
    pub(super) fn for_rows(reference: &CausalLm, train: &[PreferenceExample], val: &[PreferenceExample], ld_alpha: f64) -> Self {
        let answers = |examples: &[PreferenceExample]| examples.iter().map(|example| example.answers().len()).sum();
        let parts = vec![
            ("weights", reference.fingerprint(), "of another reference model"),
            ("numbers", reference.computes_in(), "computed on another kind of device or in another number format"),
            (
                "train_rows",
                rows(train),
                "of other training rows, or of the same rows in other tokens (tokenizer, chat template, data.max_length)",
            ),
            (
                "val_rows",
                rows(val),
                "of other validation rows, or of the same rows in other tokens (tokenizer, chat template, data.max_length)",
            ),
            ("ld_alpha", ld_alpha.to_string(), "of another algorithm.ld_alpha"),
        ];
        Self { parts, train: answers(train), val: answers(val) }
    }

    /// The metadata of a file with this key and this checksum: a single entry, because the entries of a map have no order.
    fn metadata(&self, checksum: String) -> HashMap<String, String> {
        let parts = self.parts.iter().map(|(name, value, _)| ((*name).to_owned(), json!(value)));
        let parts: Map<String, Value> = parts.chain([(CHECKSUM.to_owned(), json!(checksum))]).collect();
        HashMap::from([(ENTRY.to_owned(), Value::Object(parts).to_string())])
    }
}

/// Returns a checksum of the tokens of rows.
fn rows(examples: &[PreferenceExample]) -> String {
    let mut hash = Sha256::new();
    for answer in examples.iter().flat_map(|example| example.answers()) {
        for ids in [answer.prompt, answer.response] {
            hash.update((ids.len() as u64).to_le_bytes());
            ids.iter().for_each(|id| hash.update(id.to_le_bytes()));
        }
    }
    format!("{:x}", hash.finalize())
}

impl StoredLogProbs {
    /// Reads the file in the folder of a run. If no file fits, all `ranks` compute the values together and rank 0 writes it.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn beside(
        folder: &Path,
        key: &Key,
        ranks: &Ranks,
        compute: impl FnOnce() -> (Vec<f32>, Vec<f32>),
    ) -> Result<Self> {
        if folder.as_os_str().is_empty() {
            let (train, val) = compute();
            return Ok(Self { train, val });
        }
        let path = folder.join(FILE);
        if let Some(stored) = ranks.first(|| Self::fitting(&path, key))? {
            return Ok(stored);
        }
        let answers = key.train + key.val;
        tracing::info!("computing the reference's log-probabilities of {answers} responses, for {}", path.display());
        let (train, val) = compute();
        let stored = Self { train, val };
        ranks.first(|| no_follow::write(&path, &stored.to_bytes(key)?))?;
        Ok(stored)
    }

    /// Returns the values of a file that fits, if any.
    fn fitting(path: &Path, key: &Key) -> Result<Option<Self>> {
        if !foreign::is_there(path)? {
            return Ok(None);
        }
        let read = Self::read(path, key);
        match &read {
            Ok(_) => tracing::info!("read the reference's log-probabilities from {}", path.display()),
            Err(error) => tracing::warn!("computing the reference's log-probabilities again: {error:#}"),
        }
        Ok(read.ok())
    }

    /// Reads a file.
    ///
    /// # Errors
    /// If the file cannot be read or belongs to another key, or if its values fail the checksum or cannot be the
    /// logarithms of probabilities.
    pub(super) fn read(path: &Path, key: &Key) -> Result<Self> {
        let named = || path.display().to_string();
        let bytes = foreign::read(path, LARGEST)?;
        let (_, metadata) = SafeTensors::read_metadata(&bytes).with_context(named)?;
        let entry = metadata.metadata().as_ref().and_then(|entries| entries.get(ENTRY));
        let found: Map<String, Value> = entry.and_then(|entry| serde_json::from_str(entry).ok()).unwrap_or_default();
        for (name, value, differs) in &key.parts {
            if found.get(*name).and_then(Value::as_str) != Some(value) {
                bail!("{}: its log-probabilities are {differs}", path.display());
            }
        }
        let tensors = SafeTensors::deserialize(&bytes).with_context(named)?;
        let again = "remove the file, and have a run without ref.log_prob_path write it again";
        let sum = found.get(CHECKSUM).and_then(Value::as_str);
        let Some(sum) = sum else {
            bail!("{}: it has no checksum, and was written by an earlier version: {again}", path.display())
        };
        let bytes_of = |name: &str| tensors.tensor(name).map(|tensor| tensor.data()).with_context(named);
        ensure!(
            checksum([bytes_of("train")?, bytes_of("val")?]) == sum,
            "{}: its values do not match the checksum; {again}",
            path.display()
        );
        let column = |name: &str, count: usize| -> Result<Vec<f32>> {
            let tensor = tensors.tensor(name).with_context(named)?;
            let fits = tensor.dtype() == Dtype::F32 && tensor.shape() == [count];
            ensure!(fits, "{}: `{name}` is {:?} {:?}, not {count} float32 numbers", named(), tensor.dtype(), tensor.shape());
            let numbers = tensor.data().chunks_exact(4).map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
            let numbers: Vec<f32> = numbers.collect();
            if let Some(at) = numbers.iter().position(|number| !LOG_PROBS.contains(number)) {
                bail!(
                    "{}: `{name}` holds {} for response {at}, which is not the logarithm of a probability; {again}",
                    path.display(),
                    numbers[at]
                );
            }
            Ok(numbers)
        };
        Ok(Self { train: column("train", key.train)?, val: column("val", key.val)? })
    }

    fn to_bytes(&self, key: &Key) -> Result<Vec<u8>> {
        let bytes = [&self.train, &self.val].map(|column| column.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>());
        let view = |i: usize, count: usize| TensorView::new(Dtype::F32, vec![count], &bytes[i]);
        let tensors = [("train", view(0, self.train.len())?), ("val", view(1, self.val.len())?)];
        let checksum = checksum(bytes.iter().map(Vec::as_slice));
        Ok(serialize(tensors, Some(key.metadata(checksum)))?)
    }
}
