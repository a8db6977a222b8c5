//! The values of tensors in safetensors files.

use std::collections::BTreeMap;
use std::ops::Range;

use anyhow::{Result, bail};
use safetensors::Dtype;
use safetensors::tensor::TensorView;

/// Returns a tensor's values as f32.
pub fn to_f32(view: &TensorView) -> Result<Vec<f32>> {
    converted(view.dtype(), view.data())
}

/// Returns a tensor's values as f32.
///
/// # Errors
/// If a value is not finite.
pub(crate) fn finite_f32(view: &TensorView) -> Result<Vec<f32>> {
    all_finite(to_f32(view)?)
}

/// Returns the values if all are finite.
pub(crate) fn all_finite(values: Vec<f32>) -> Result<Vec<f32>> {
    match values.iter().find(|x| !x.is_finite()) {
        Some(x) => bail!("it holds {x}; all weights of a model must be finite"),
        None => Ok(values),
    }
}

/// The number of elements of a tensor.
pub fn count(view: &TensorView) -> usize {
    view.shape().iter().product()
}

/// Returns a range of a tensor's values, in row-major order, as f32; also of bytes.
///
/// # Errors
/// If the dtype of the tensor is not f32, f16, bf16 or u8, even for an empty range.
///
/// # Panics
/// If the range exceeds the tensor.
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

/// The name under which a file holds a tensor. Models saved without their head omit the first part of each name; transformers 5
/// writes some tensors under the decoder's name.
pub(crate) fn name_in_files<'a, T>(tensors: &'a BTreeMap<String, T>, name: &str, parameter: &str) -> Option<&'a String> {
    let bare = name.split_once('.').map(|(_, rest)| rest);
    [Some(name), bare, Some(parameter)].into_iter().flatten().find_map(|name| tensors.get_key_value(name)).map(|(name, _)| name)
}

/// The values of a parameter, which are read when they are needed.
pub struct Values(Box<dyn Fn(Option<usize>) -> Vec<f32>>);

impl Values {
    /// `read` returns all values, or the values of one index of the first dimension.
    pub(crate) fn new(read: impl Fn(Option<usize>) -> Vec<f32> + 'static) -> Self {
        Self(Box::new(read))
    }

    /// Reads all values, row-major.
    pub fn all(&self) -> Vec<f32> {
        (self.0)(None)
    }

    /// Reads the values of one index of the first dimension.
    pub(crate) fn row(&self, index: usize) -> Vec<f32> {
        (self.0)(Some(index))
    }
}
