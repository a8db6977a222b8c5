//! Ragged columns: iteration over their sequences, and conversion to and from small CPU tensors.

use std::ops::Range;

use burn::tensor::{Device, IndexingUpdateOp, Int, Tensor, TensorData};

/// Returns the token range of every sequence, in order.
pub fn sequences(offsets: &[usize]) -> impl ExactSizeIterator<Item = Range<usize>> + Clone + '_ {
    offsets.windows(2).map(|pair| pair[0]..pair[1])
}

/// Returns a column's entries at the tokens of some sequences, one after another.
pub fn gather(column: &[f32], offsets: &[usize], chosen: &[usize]) -> Vec<f32> {
    chosen.iter().flat_map(|&i| &column[offsets[i]..offsets[i + 1]]).copied().collect()
}

/// The reverse of [`gather`]: writes gathered entries back to the tokens of their sequences.
pub fn scatter(column: &mut [f32], gathered: &[f32], offsets: &[usize], chosen: &[usize]) {
    let mut rest = gathered;
    for &i in chosen {
        let (own, after) = rest.split_at(offsets[i + 1] - offsets[i]);
        column[offsets[i]..offsets[i + 1]].copy_from_slice(own);
        rest = after;
    }
}

/// Returns the offsets of some sequences laid one after another.
pub fn gather_offsets(offsets: &[usize], chosen: &[usize]) -> Vec<usize> {
    let mut gathered = vec![0];
    for &i in chosen {
        gathered.push(gathered[gathered.len() - 1] + offsets[i + 1] - offsets[i]);
    }
    gathered
}

/// Returns a column as a tensor. Losses always run on the CPU: a column is a few kB.
pub(super) fn tensor(column: &[f32], device: &Device) -> Tensor<1> {
    Tensor::from_data(TensorData::new(column.to_vec(), [column.len()]), device)
}

/// Converts a tensor made by [`tensor`] back to a column.
pub(super) fn host(tensor: Tensor<1>) -> Vec<f32> {
    tensor.into_data().try_to_vec().expect("columns are float32")
}

/// Returns Σ mask·value in f64.
pub(super) fn masked_sum(values: Tensor<1>, mask: &Tensor<1>) -> f64 {
    host(values * mask.clone()).into_iter().map(f64::from).sum()
}

/// Differentiable sums over the tokens of sequences, and the inverse: one value per sequence, copied to each of its tokens.
pub(super) struct Segments {
    /// The sequence of each token, `[tokens]`.
    index: Tensor<1, Int>,
    count: usize,
}

impl Segments {
    pub(crate) fn new(offsets: &[usize], device: &Device) -> Self {
        let index: Vec<i64> = sequences(offsets).enumerate().flat_map(|(i, tokens)| tokens.map(move |_| i as i64)).collect();
        let tokens = index.len();
        Self { index: Tensor::from_data(TensorData::new(index, [tokens]), device), count: offsets.len() - 1 }
    }

    /// Sums over the tokens of each sequence: `[tokens]` to `[sequences]`. Masked tokens must be 0 already.
    pub(crate) fn sum(&self, tokens: Tensor<1>) -> Tensor<1> {
        let zeros = Tensor::zeros([self.count], &tokens.device());
        zeros.select_assign(0, self.index.clone(), tokens, IndexingUpdateOp::Add)
    }

    /// Gives each token the value of its sequence: `[sequences]` to `[tokens]`.
    pub(crate) fn spread(&self, sequences: Tensor<1>) -> Tensor<1> {
        sequences.select(0, self.index.clone())
    }
}
