//! Ragged columns: walking their sequences, and carrying them to and from small CPU tensors.

use std::ops::Range;

use burn::tensor::{Device, Tensor, TensorData};

/// The token range of every sequence, in order.
pub fn sequences(offsets: &[usize]) -> impl ExactSizeIterator<Item = Range<usize>> + Clone + '_ {
    offsets.windows(2).map(|pair| pair[0]..pair[1])
}

/// A column as a tensor. Losses always run on the CPU: a column is a few kB.
pub(super) fn tensor(column: &[f32], device: &Device) -> Tensor<1> {
    Tensor::from_data(TensorData::new(column.to_vec(), [column.len()]), device)
}

/// A tensor made by [`tensor`] as a column again.
pub(super) fn host(tensor: Tensor<1>) -> Vec<f32> {
    tensor.into_data().try_to_vec().expect("columns are float32")
}

/// Σ mask·value in f64.
pub(super) fn masked_sum(values: Tensor<1>, mask: &Tensor<1>) -> f64 {
    host(values * mask.clone()).into_iter().map(f64::from).sum()
}
