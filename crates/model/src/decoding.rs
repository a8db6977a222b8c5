//! Inference with a KV cache: whole prompts first, then token by token. On the CPU in float32, a row's result does not depend on
//! the other rows.

use std::sync::Arc;

use burn::tensor::{FloatDType, Tensor};

use super::causal_lm::CausalLm;
use super::decoder::Pass;
use super::device::is_cpu;
use super::kv_cache::KvCache;
use super::ops::{CacheRows, CacheView, Packed, cast, linear, products_on_host, to_host};

impl CausalLm {
    /// Creates an empty cache for this model's keys and values.
    pub fn cache(&self) -> KvCache {
        KvCache::new(&self.config, self.dtype, &self.device)
    }

    /// Returns the hidden states [rows, h] of whole prompts, packed as `layout`. Writes their keys and values to the rows
    /// `places` of the cache, one for each row of the layout.
    pub fn prefill(&self, ids: &[u32], layout: &Arc<Packed>, places: &CacheRows, cache: &mut KvCache) -> Tensor<2> {
        let positions = layout.positions();
        let pass = Pass { independent_rows: true, ..self.pass(&positions) };
        self.net.forward(self.embed(ids, &positions), &pass, &mut |layer, q, k, v| {
            cache.write(layer, places, flat(&k), flat(&v));
            self.attention(layer, [q, k, v], layout)
        })
    }

    /// Returns the hidden states [rows, h] of one new token per sequence at `positions`. Its keys and values are first written to
    /// the cache, into the blocks of `tables`.
    pub fn decode(&self, ids: &[u32], positions: &[usize], tables: &[&[usize]], cache: &mut KvCache) -> Tensor<2> {
        let pass = Pass { independent_rows: true, ..self.pass(positions) };
        let lens: Vec<usize> = positions.iter().map(|p| p + 1).collect();
        let at = CacheView::new(self.config.num_key_value_heads, tables, &lens);
        self.net.forward(self.embed(ids, positions), &pass, &mut |layer, q, k, v| {
            let sinks = self.net.model.layers[layer].self_attn.sinks.as_ref().map(|sinks| sinks.val().inner());
            cache.attend(layer, q, [flat(&k), flat(&v)], &at, self.config.scoring(layer), sinks.as_ref())
        })
    }

    /// Returns the logits [rows, vocab] of hidden states [rows, h], in f32, on the device of the hidden states.
    pub fn logits_on_device(&self, hidden: Tensor<2>) -> Tensor<2> {
        let hidden = self.scaled_for_logits(hidden);
        let logits = cast(linear(cast(hidden, self.dtype), self.low_precision_head(), None), FloatDType::F32);
        match self.config.logit_softcap {
            Some(cap) => (logits / cap).tanh() * cap,
            None => logits,
        }
    }

    /// Applies the family's factor on logits to hidden states [rows, h] instead.
    pub(super) fn scaled_for_logits(&self, hidden: Tensor<2>) -> Tensor<2> {
        match self.config.logit_scale {
            Some(scale) => hidden * scale,
            None => hidden,
        }
    }

    /// Computes the logits of hidden states [rows, h] into `out` [rows, vocab]. The memory of `out` is reused.
    pub fn logits(&self, hidden: Tensor<2>, out: &mut Vec<f32>) {
        if !is_cpu(&self.device) || self.dtype != FloatDType::F32 {
            *out = to_host(self.logits_on_device(hidden));
            return;
        }
        products_on_host(self.scaled_for_logits(hidden), self.net.head().val().inner(), out);
        if let Some(cap) = self.config.logit_softcap {
            out.iter_mut().for_each(|logit| *logit = cap * (*logit / cap).tanh());
        }
    }
}

/// [rows, heads, d] -> [rows, heads · d]
fn flat(x: &Tensor<3>) -> Tensor<2> {
    x.clone().flatten(1, 2)
}
