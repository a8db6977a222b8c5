//! The inputs of a gated delta rule: heads, tensors, layout.

use std::sync::Arc;

use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;

use super::flex::{f32s, flex_f32};
use super::packed::Packed;

/// Added to Σx² before queries and keys are divided by its root.
pub(super) const LENGTH_EPS: f32 = 1e-6;

/// The heads of a delta rule. The number of value heads is a multiple of the key heads; consecutive value heads share a key head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeltaHeads {
    pub key_heads: usize,
    pub value_heads: usize,
    pub key_dim: usize,
    pub value_dim: usize,
}

impl DeltaHeads {
    /// The width of all queries, or of all keys.
    pub fn keys(self) -> usize {
        self.key_heads * self.key_dim
    }

    /// The width of all values.
    pub fn values(self) -> usize {
        self.value_heads * self.value_dim
    }

    /// The width of queries, keys and values together.
    pub fn width(self) -> usize {
        2 * self.keys() + self.values()
    }

    /// The elements of the states of all heads.
    pub fn states(self) -> usize {
        self.value_heads * self.state()
    }

    /// The elements of the state of one head.
    pub(super) fn state(self) -> usize {
        self.key_dim * self.value_dim
    }

    /// The number of value heads that share a key head.
    pub(super) fn group(self) -> usize {
        self.value_heads / self.key_heads
    }
}

/// The inputs of a delta rule.
#[derive(Clone, Debug)]
pub struct DeltaTensors {
    /// Queries, keys and values, [rows, width].
    pub qkv: Tensor<2>,
    /// [rows, value heads]
    pub a: Tensor<2>,
    /// [rows, value heads]
    pub b: Tensor<2>,
    /// `[value heads]`
    pub a_log: Tensor<1>,
    /// `[value heads]`
    pub dt_bias: Tensor<1>,
}

impl DeltaTensors {
    /// The slices of the tensors if all are on the CPU in f32, outside any graph.
    pub(super) fn slices(&self) -> Option<[FlexTensor; 5]> {
        let Self { qkv, a, b, a_log, dt_bias } = self;
        Some([flex_f32(qkv)?, flex_f32(a)?, flex_f32(b)?, flex_f32(a_log)?, flex_f32(dt_bias)?])
    }
}

/// The rows and heads of a delta rule.
#[derive(Clone, Debug)]
pub struct DeltaLayout {
    pub packed: Arc<Packed>,
    pub heads: DeltaHeads,
}

/// The values of a delta rule's inputs.
#[derive(Clone, Copy)]
pub(super) struct DeltaSlices<'a> {
    pub qkv: &'a [f32],
    pub a: &'a [f32],
    pub b: &'a [f32],
    pub a_log: &'a [f32],
    pub dt_bias: &'a [f32],
}

impl<'a> DeltaSlices<'a> {
    pub(super) fn new([qkv, a, b, a_log, dt_bias]: &'a [FlexTensor; 5]) -> Self {
        Self { qkv: f32s(qkv), a: f32s(a), b: f32s(b), a_log: f32s(a_log), dt_bias: f32s(dt_bias) }
    }

    /// The value of a head in a row.
    pub(super) fn value(&self, heads: DeltaHeads, head: usize, row: usize) -> &'a [f32] {
        let first = row * heads.width() + 2 * heads.keys() + head * heads.value_dim;
        &self.qkv[first..first + heads.value_dim]
    }

    pub(super) fn check(&self, packed: &Packed, heads: DeltaHeads) {
        let (rows, gates) = (packed.rows(), packed.rows() * heads.value_heads);
        assert_eq!((self.qkv.len(), self.a.len(), self.b.len()), (rows * heads.width(), gates, gates));
        assert_eq!((self.a_log.len(), self.dt_bias.len()), (heads.value_heads, heads.value_heads));
    }
}
