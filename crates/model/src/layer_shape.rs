//! The shapes in which layers of one decoder differ: attention with and without a window, layers that reuse keys and values of
//! an earlier layer, inputs of each layer (Gemma 4), both attention and a recurrence (Falcon-H1).

/// The attention of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttentionShape {
    pub heads: usize,
    /// The number of heads of keys and values.
    pub kv_heads: usize,
    pub head_dim: usize,
    /// True if the values are the projected keys, before their norm.
    pub keys_are_values: bool,
    /// The earlier layer whose keys and values the layer reads; `None` if the layer has its own.
    pub source: Option<usize>,
}

impl AttentionShape {
    /// The width of all queries; the largest number if sizes that no model has overflow.
    pub fn queries(self) -> usize {
        self.heads.saturating_mul(self.head_dim)
    }

    /// The width of all keys, or of all values; the largest number if sizes that no model has overflow.
    pub fn keys(self) -> usize {
        self.kv_heads.saturating_mul(self.head_dim)
    }

    /// The number of matrices that project keys and values.
    pub(crate) fn kv_projections(self) -> usize {
        match (self.source, self.keys_are_values) {
            (Some(_), _) => 0,
            (None, true) => 1,
            (None, false) => 2,
        }
    }
}

/// The attention of layers without a window, where layers with a window have other heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GlobalAttention {
    pub kv_heads: usize,
    pub head_dim: usize,
    pub keys_are_values: bool,
}

/// Layers whose attention and recurrence read the same input, and the factors on their results before these are added.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParallelMixers {
    pub attention: f32,
    pub recurrence: f32,
}

/// Inputs of each layer in addition to the residual stream, made of a token's row in a second table and of its embedding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerInputs {
    /// Rows of the table.
    pub vocab_size: usize,
    /// The width of one layer's input.
    pub width: usize,
}
