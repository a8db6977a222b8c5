//! The shape of each layer of a decoder.

use super::config::{DecoderConfig, QkNorm};
use super::layer_shape::AttentionShape;

impl DecoderConfig {
    /// The attention of a layer.
    pub fn attention(&self, layer: usize) -> AttentionShape {
        let global = self.global_attention.filter(|_| self.windows[layer].is_none());
        AttentionShape {
            heads: self.num_attention_heads,
            kv_heads: global.map_or(self.num_key_value_heads, |global| global.kv_heads),
            head_dim: global.map_or(self.head_dim, |global| global.head_dim),
            keys_are_values: global.is_some_and(|global| global.keys_are_values),
            source: self.source(layer),
        }
    }

    /// The size of a head in layers without a window.
    pub(crate) fn global_head_dim(&self) -> usize {
        self.global_attention.map_or(self.head_dim, |global| global.head_dim)
    }

    /// For one of the last `shared_layers`, the last layer before them whose window is the same.
    fn source(&self, layer: usize) -> Option<usize> {
        let first = self.num_hidden_layers - self.shared_layers;
        let is_like = |other: &usize| self.windows[*other].is_some() == self.windows[layer].is_some();
        (layer >= first).then(|| (0..first).rev().find(is_like)).flatten()
    }

    /// True if a later layer reads the keys and values of this layer.
    pub(crate) fn is_source(&self, layer: usize) -> bool {
        (self.num_hidden_layers - self.shared_layers..self.num_hidden_layers).any(|other| self.source(other) == Some(layer))
    }

    /// The intermediate size of a layer's MLP.
    pub(crate) fn mlp_width(&self, layer: usize) -> usize {
        self.intermediate_size * if self.double_wide && self.source(layer).is_some() { 2 } else { 1 }
    }

    /// True if a layer has attention.
    pub(crate) fn has_attention(&self, layer: usize) -> bool {
        self.recurrent(layer).is_none() || self.parallel.is_some()
    }

    /// True if a layer has its own keys and values.
    pub(crate) fn keeps_keys(&self, layer: usize) -> bool {
        self.has_attention(layer) && self.source(layer).is_none()
    }

    /// The width of the inputs of all layers; 0 for a model without them.
    pub(crate) fn layer_inputs_width(&self) -> usize {
        self.layer_inputs.map_or(0, |inputs| self.num_hidden_layers * inputs.width)
    }

    /// True if one kernel can do what follows the projections of attention.
    pub(crate) fn has_plain_heads(&self) -> bool {
        matches!(self.qk_norm, QkNorm::None | QkNorm::PerHead) && !self.value_norm
    }
}
