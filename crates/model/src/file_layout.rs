//! Converts the values of a parameter to and from the tensors in files.

use super::config::DecoderConfig;
use super::naming::TensorLocation;

impl TensorLocation {
    /// Returns the values of a parameter of this shape from the values of its tensor in a file.
    pub fn from_file(&self, values: Vec<f32>, shape: &[usize], config: &DecoderConfig) -> Vec<f32> {
        if self.part.is_none() && !self.transposed {
            return values;
        }
        self.elements(shape, config).map(|i| values[i]).collect()
    }

    /// Writes the values of a parameter of this shape to their positions in `tensor`.
    pub fn into_file(&self, values: &[f32], shape: &[usize], config: &DecoderConfig, tensor: &mut [f32]) {
        for (i, value) in self.elements(shape, config).zip(values) {
            tensor[i] = *value;
        }
    }

    /// For each element of a parameter of this shape, in row-major order, its index in the tensor of the file.
    fn elements(&self, shape: &[usize], config: &DecoderConfig) -> impl Iterator<Item = usize> {
        let columns: usize = shape[1..].iter().product();
        let rows = match self.part {
            Some(part) => config.naming.rows_of_part(part, config.num_attention_heads, config.head_dim),
            None => (0..shape[0]).collect(),
        };
        let all_rows = self.part.map_or(shape[0], |_| 3 * shape[0]);
        let (row, column) = if self.transposed { (1, all_rows) } else { (columns, 1) };
        rows.into_iter().flat_map(move |r| (0..columns).map(move |c| r * row + c * column))
    }
}
