//! Writes safetensors. Each tensor is computed when it is written, so that no second copy of a model is held.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};
use safetensors::tensor::{TensorView, View};
use safetensors::{Dtype, SafeTensorError};
use serde_json::{Map, Value, json};

use burnish_util::fs::write_json;

/// A tensor whose values are computed when it is written to a file.
pub struct DeferredTensor<'a> {
    pub name: String,
    pub shape: Vec<usize>,
    dtype: Dtype,
    content: Content<'a>,
}

enum Content<'a> {
    Values(Box<dyn Fn() -> Vec<f32> + 'a>),
    /// The bytes of another file, in the tensor's dtype.
    Bytes(&'a [u8]),
}

impl<'a> DeferredTensor<'a> {
    /// A tensor of f32 values, row-major.
    pub fn new(name: String, shape: Vec<usize>, values: impl Fn() -> Vec<f32> + 'a) -> Self {
        Self { name, shape, dtype: Dtype::F32, content: Content::Values(Box::new(values)) }
    }

    /// A tensor of another file, which is written byte for byte.
    pub fn copied(name: String, view: &TensorView<'a>) -> Self {
        Self { name, shape: view.shape().to_vec(), dtype: view.dtype(), content: Content::Bytes(view.data()) }
    }

    /// The values, row-major; none for a copied tensor, which may hold other numbers.
    pub fn values(&self) -> Vec<f32> {
        match &self.content {
            Content::Values(values) => values(),
            Content::Bytes(_) => Vec::new(),
        }
    }

    /// Returns the tensor with the dtype to write: f32; f16 or bf16 (rounded to nearest, ties to even); or u8, if all values are
    /// bytes.
    pub fn with_dtype(self, dtype: Dtype) -> Self {
        Self { dtype, ..self }
    }

    /// Returns the tensor under another name.
    pub fn renamed(self, name: String) -> Self {
        Self { name, ..self }
    }

    pub fn bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.dtype.bitsize() / 8
    }
}

/// The error of a tensor that is not written because a value is NaN or infinite.
#[derive(Debug)]
pub struct NotFiniteError {
    pub tensor: String,
}

impl fmt::Display for NotFiniteError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "tensor `{}` has values that are NaN or infinite, and such files are not written", self.tensor)
    }
}

impl std::error::Error for NotFiniteError {}

/// The first tensors of a file that cannot be written.
#[derive(Default)]
struct WriteErrors {
    /// A tensor with a finite value that its dtype cannot hold.
    overflow: OnceLock<String>,
    /// A tensor with a value that is not finite.
    not_finite: OnceLock<String>,
}

/// A tensor in the form that `safetensors` expects.
struct LazyView<'a> {
    tensor: &'a DeferredTensor<'a>,
    errors: &'a WriteErrors,
}

impl View for LazyView<'_> {
    fn dtype(&self) -> Dtype {
        self.tensor.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.tensor.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        if let Content::Bytes(bytes) = self.tensor.content {
            return bytes.into();
        }
        let values = self.tensor.values();
        if !values.iter().all(|x| x.is_finite()) {
            _ = self.errors.not_finite.set(self.tensor.name.clone());
        }
        let halves = |narrow: fn(f32) -> (u16, bool)| -> Vec<u8> {
            let narrow = |x: &f32| {
                let (bits, is_finite) = narrow(*x);
                if x.is_finite() && !is_finite {
                    _ = self.errors.overflow.set(self.tensor.name.clone());
                }
                bits.to_le_bytes()
            };
            values.iter().flat_map(narrow).collect()
        };
        let bytes = match self.tensor.dtype {
            Dtype::BF16 => halves(|x| {
                let x = burn::tensor::bf16::from_f32(x);
                (x.to_bits(), x.is_finite())
            }),
            Dtype::F16 => halves(|x| {
                let x = burn::tensor::f16::from_f32(x);
                (x.to_bits(), x.is_finite())
            }),
            Dtype::U8 => values.iter().map(|x| *x as u8).collect(),
            _ => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
        };
        bytes.into()
    }

    fn data_len(&self) -> usize {
        self.tensor.bytes()
    }
}

/// Writes named tensors as one file. The caller makes the write atomic (see `util::fs`).
///
/// # Errors
/// If the file cannot be written, or a value is out of the range of its dtype; [`NotFiniteError`] if a value is NaN or infinite.
pub fn write_safetensors<'a>(path: &Path, tensors: impl IntoIterator<Item = &'a DeferredTensor<'a>>) -> Result<()> {
    let errors = WriteErrors::default();
    let views = tensors.into_iter().map(|tensor| (tensor.name.as_str(), LazyView { tensor, errors: &errors }));
    // transformers refuses files without this entry.
    let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    let written = safetensors::serialize_to_file(views, Some(metadata), path).map_err(|error| match error {
        SafeTensorError::IoError(error) => anyhow::Error::from(error),
        error => error.into(),
    });
    written.with_context(|| format!("cannot write {}", path.display()))?;
    if let Some(name) = errors.not_finite.get() {
        return Err(NotFiniteError { tensor: name.clone() }.into());
    }
    match errors.overflow.get() {
        Some(name) => bail!("tensor `{name}` has values that are too large for float16; use bfloat16 or float32"),
        None => Ok(()),
    }
}

/// Writes the weights of a model in transformers' layout: `model.safetensors`, or shards and their index if that file would
/// exceed `max` bytes. A tensor is never split.
pub fn write_model(folder: &Path, tensors: &[DeferredTensor], max: usize) -> Result<()> {
    let (mut shards, mut room): (Vec<Vec<&DeferredTensor>>, usize) = (vec![], 0);
    for tensor in tensors {
        match shards.last_mut().filter(|_| tensor.bytes() <= room) {
            Some(shard) => shard.push(tensor),
            None => {
                shards.push(vec![tensor]);
                room = max;
            }
        }
        room = room.saturating_sub(tensor.bytes());
    }
    if let [only] = &shards[..] {
        return write_safetensors(&folder.join("model.safetensors"), only.iter().copied());
    }
    let mut weight_map = Map::new();
    for (i, shard) in shards.iter().enumerate() {
        let name = format!("model-{:05}-of-{:05}.safetensors", i + 1, shards.len());
        write_safetensors(&folder.join(&name), shard.iter().copied())?;
        weight_map.extend(shard.iter().map(|tensor| (tensor.name.clone(), Value::from(name.as_str()))));
    }
    let total_size: usize = tensors.iter().map(DeferredTensor::bytes).sum();
    weight_map.sort_keys();
    let index = json!({"metadata": {"total_size": total_size}, "weight_map": weight_map});
    write_json(&folder.join("model.safetensors.index.json"), &index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_not_finite_are_not_written_in_any_type() {
        let folder = tempfile::tempdir().unwrap();
        for dtype in [Dtype::F32, Dtype::F16, Dtype::BF16] {
            for number in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1.0] {
                let good = DeferredTensor::new("a".to_owned(), vec![2], || vec![0.0, 1.0]).with_dtype(dtype);
                let tried = DeferredTensor::new("b".to_owned(), vec![2], move || vec![0.0, number]).with_dtype(dtype);
                let written = write_safetensors(&folder.path().join("x.safetensors"), &[good, tried]);
                let refused = written.err().and_then(|error| Some(error.downcast_ref::<NotFiniteError>()?.tensor.clone()));
                assert_eq!(refused, (!number.is_finite()).then(|| "b".to_owned()), "{dtype:?} {number}");
            }
        }
    }
}
