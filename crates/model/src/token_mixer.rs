//! The operations of a pass that connect tokens: attention, convolution, the delta rule, the selective scan. Every layer calls them
//! through [`TokenMixer`], so that training, prefill and decoding share the network.

use std::sync::Arc;

use burn::tensor::Tensor;

use super::config::DecoderConfig;
use super::linear_attention::RecurrentKind;
use super::ops::{
    AttentionScoring, DeltaHeads, DeltaLayout, DeltaTensors, Packed, ScanLayout, ScanShape, ScanTensors, attention,
    attention_with_sinks, causal_conv, delta_rule, scan,
};

/// The operations of a pass over rows that read other rows.
pub(crate) trait TokenMixer {
    /// The attention of a layer: q, k and v, each [n, heads, d] and rotated, to [n, heads, d]. `sinks` `[heads]` has the logits of
    /// attention's sinks.
    fn attend(&mut self, layer: usize, qkv: [Tensor<3>; 3], sinks: Option<Tensor<1>>) -> Tensor<3>;

    /// The convolution of a layer: x [n, channels] with w [channels, k], to [n, channels].
    fn convolve(&mut self, layer: usize, x: Tensor<2>, w: Tensor<2>) -> Tensor<2>;

    /// The delta rule of a layer, [n, value heads · value dim].
    fn delta_rule(&mut self, layer: usize, inputs: DeltaTensors) -> Tensor<2>;

    /// The selective scan of a layer, [n, heads · head dim].
    fn scan(&mut self, layer: usize, inputs: ScanTensors) -> Tensor<2>;
}

impl DecoderConfig {
    /// The heads of a layer of delta nets.
    ///
    /// # Panics
    /// If the layer has none.
    pub(crate) fn delta_heads(&self, layer: usize) -> DeltaHeads {
        match self.recurrent(layer) {
            Some(RecurrentKind::DeltaNet(shape)) => shape.heads,
            kind => panic!("layer {layer} has no delta net: {kind:?}"),
        }
    }

    /// The shape of a layer's selective scan.
    ///
    /// # Panics
    /// If the layer has none.
    pub(crate) fn scan_shape(&self, layer: usize) -> ScanShape {
        match self.recurrent(layer) {
            Some(RecurrentKind::Mamba(shape)) => shape.scan,
            kind => panic!("layer {layer} has no scan: {kind:?}"),
        }
    }
}

/// The attention over packed rows: q, k and v, each [n, heads, d], to [n, heads, d].
pub(crate) fn attention_of(
    [q, k, v]: [Tensor<3>; 3],
    sinks: Option<Tensor<1>>,
    packed: &Arc<Packed>,
    scoring: AttentionScoring,
) -> Tensor<3> {
    match sinks {
        Some(sinks) => attention_with_sinks([q, k, v], sinks, packed.clone(), scoring),
        None => attention(q, k, v, packed.clone(), scoring),
    }
}

/// The operations over whole sequences, packed.
pub(crate) struct PackedMixer<'a> {
    pub packed: &'a Arc<Packed>,
    pub config: &'a DecoderConfig,
}

impl TokenMixer for PackedMixer<'_> {
    fn attend(&mut self, layer: usize, qkv: [Tensor<3>; 3], sinks: Option<Tensor<1>>) -> Tensor<3> {
        attention_of(qkv, sinks, self.packed, self.config.scoring(layer))
    }

    fn convolve(&mut self, _: usize, x: Tensor<2>, w: Tensor<2>) -> Tensor<2> {
        causal_conv(x, w, self.packed)
    }

    fn delta_rule(&mut self, layer: usize, inputs: DeltaTensors) -> Tensor<2> {
        delta_rule(inputs, DeltaLayout { packed: self.packed.clone(), heads: self.config.delta_heads(layer) })
    }

    fn scan(&mut self, layer: usize, inputs: ScanTensors) -> Tensor<2> {
        scan(inputs, ScanLayout { packed: self.packed.clone(), shape: self.config.scan_shape(layer) })
    }
}
