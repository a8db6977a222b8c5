//! Converts the values of a parameter to and from the tensors in files.

use super::config::{DecoderConfig, Positions};
use super::naming::{FusedPart, FusedQkv, TensorLocation};

impl TensorLocation {
    /// The shape of the tensor in files for a parameter of this shape.
    pub fn shape(&self, parameter: &[usize], config: &DecoderConfig) -> Vec<usize> {
        let mut shape = parameter.to_vec();
        shape[0] = self.all_rows(parameter[0], config);
        if self.transposed {
            shape.reverse();
        }
        shape
    }

    /// Returns the values of a parameter of this shape from the values of its tensor in a file.
    pub fn from_file(&self, values: Vec<f32>, shape: &[usize], config: &DecoderConfig) -> Vec<f32> {
        if self.is_plain() {
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

    /// True if the file holds the parameter as the network does.
    pub fn is_plain(&self) -> bool {
        self.part.is_none() && !self.in_pairs && !self.transposed
    }

    /// For each element of a parameter of this shape, in row-major order, its index in the tensor of the file.
    fn elements(&self, shape: &[usize], config: &DecoderConfig) -> impl Iterator<Item = usize> {
        let columns: usize = shape[1..].iter().product();
        let all_rows = self.all_rows(shape[0], config);
        let (row, column) = if self.transposed { (1, all_rows) } else { (columns, 1) };
        self.rows(shape[0], config).into_iter().flat_map(move |r| (0..columns).map(move |c| r * row + c * column))
    }

    /// The number of rows of the tensor that holds a parameter of `own` rows.
    fn all_rows(&self, own: usize, config: &DecoderConfig) -> usize {
        match self.part {
            None => own,
            Some(FusedPart::Gate | FusedPart::Up) => 2 * own,
            Some(FusedPart::Query | FusedPart::Key | FusedPart::Value) => {
                (config.num_attention_heads + 2 * config.num_key_value_heads) * config.head_dim
            }
        }
    }

    /// For each of a parameter's `own` rows, its row in the tensor of the file.
    fn rows(&self, own: usize, config: &DecoderConfig) -> Vec<usize> {
        let d = config.head_dim;
        let (queries, keys) = (config.num_attention_heads * d, config.num_key_value_heads * d);
        // The number of the part among q, k and v, and its first row if parts follow one another.
        let (number, first) = match self.part {
            None | Some(FusedPart::Query | FusedPart::Gate) => (0, 0),
            Some(FusedPart::Key) => (1, queries),
            Some(FusedPart::Value) => (2, queries + keys),
            Some(FusedPart::Up) => (1, own),
        };
        let rotated = match &config.positions {
            Positions::Rotary(rope) if self.in_pairs => rope.rotated(d),
            _ => 0,
        };
        let of_qkv = matches!(self.part, Some(FusedPart::Query | FusedPart::Key | FusedPart::Value));
        let is_per_head = of_qkv && config.naming.fused_qkv == Some(FusedQkv::PerHead);
        let row = |row: usize| {
            let head = row / d;
            let inside = match row % d {
                i if i >= rotated => i,
                i if i < rotated / 2 => 2 * i,
                i => 2 * (i - rotated / 2) + 1,
            };
            if is_per_head { (3 * head + number) * d + inside } else { first + head * d + inside }
        };
        (0..own).map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::hf_config::HfConfig;
    use crate::naming::{Naming, PLAIN};

    static PER_HEAD: Naming = Naming { fused_qkv: Some(FusedQkv::PerHead), ..PLAIN };
    static BLOCKS: Naming = Naming { fused_qkv: Some(FusedQkv::Blocks), fused_gate_up: true, rotates_pairs: true, ..PLAIN };

    fn config(naming: &'static Naming, heads: usize, kv_heads: usize, head_dim: usize) -> DecoderConfig {
        let json = json!({
            "model_type": "llama", "vocab_size": 20, "hidden_size": 8, "intermediate_size": 3, "num_hidden_layers": 1,
            "num_attention_heads": heads, "num_key_value_heads": kv_heads, "head_dim": head_dim,
        });
        let config = HfConfig::from_json(json.as_object().unwrap().clone()).decoder().unwrap();
        DecoderConfig { naming, ..config }
    }

    #[test]
    fn rows_of_fused_matrices() {
        let rows = |config: &DecoderConfig, parameter: &str, own| config.place(parameter).rows(own, config);
        let neox = config(&PER_HEAD, 2, 2, 2);
        assert_eq!(rows(&neox, "model.layers.0.self_attn.k_proj.weight", 4), [2, 3, 8, 9]);
        let grouped = config(&BLOCKS, 2, 1, 4);
        assert_eq!(rows(&grouped, "model.layers.0.self_attn.q_proj.weight", 8), [0, 2, 1, 3, 4, 6, 5, 7]);
        assert_eq!(rows(&grouped, "model.layers.0.self_attn.k_proj.weight", 4), [8, 10, 9, 11]);
        assert_eq!(rows(&grouped, "model.layers.0.self_attn.v_proj.weight", 4), [12, 13, 14, 15]);
        assert_eq!(rows(&grouped, "model.layers.0.mlp.up_proj.weight", 3), [3, 4, 5]);
        assert_eq!(grouped.place("model.layers.0.mlp.gate_proj.weight").shape(&[3, 8], &grouped), [6, 8]);
        assert_eq!(grouped.place("model.layers.0.self_attn.v_proj.weight").shape(&[4, 8], &grouped), [16, 8]);
    }
}
