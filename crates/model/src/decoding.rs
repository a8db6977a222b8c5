//! Inference with a KV cache: whole prompts first, then token by token. On the CPU in float32, a row's result does not depend on
//! the other rows.

use std::sync::Arc;

use burn::tensor::{FloatDType, Tensor};

use super::causal_lm::CausalLm;
use super::config::DecoderConfig;
use super::decoder::Pass;
use super::device::is_cpu;
use super::kv_cache::{BlockTable, KvCache, place};
use super::ops::{
    CacheRows, CacheView, DeltaLayout, DeltaTensors, Packed, ScanLayout, ScanTensors, SlotRows, cast, causal_conv, conv_tails,
    delta_rule_with_states, linear, products_on_host, scan_with_states, to_host,
};
use super::token_mixer::{TokenMixer, attention_of};

impl CausalLm {
    /// Creates an empty cache for this model's keys and values.
    pub fn cache(&self) -> KvCache {
        KvCache::new(&self.config, self.dtype, &self.device)
    }

    /// Returns the hidden states [rows, h] of whole prompts, packed as `layout`, one tree without branches for each. Writes their
    /// keys and values, and the states of recurrent layers after each prompt, to the cache, into the blocks of `tables`.
    pub fn prefill(&self, ids: &[u32], layout: &Arc<Packed>, tables: &[&BlockTable], cache: &mut KvCache) -> Tensor<2> {
        let positions = layout.positions();
        let pass = Pass { independent_rows: true, ..self.pass(&positions) };
        let lens = layout.trees.iter().map(|tree| tree[0].rows.len());
        let places = tables.iter().zip(lens.clone()).flat_map(|(table, len)| (0..len).map(|position| place(table, position)));
        let places = places.collect::<Vec<_>>().into();
        let slots = cache.slots(tables);
        let moved = slots.iter().zip(lens).flat_map(|(slot, len)| vec![*slot; len]).collect::<Vec<_>>().into();
        let slots = slots.into();
        let mut mixer = PrefillMixer { config: &self.config, layout, places, slots, cache };
        let hidden = self.net.forward(self.embed(ids, &positions), &pass, &mut mixer);
        cache.moved(&moved);
        hidden
    }

    /// Returns the hidden states [rows, h] of one new token per row at `positions`, in the sequences of `tables`. Rows of one
    /// sequence are neighbours, in order. Keys and values are first written to the cache, into the blocks of the table; the
    /// states of recurrent layers move past the tokens.
    pub fn decode(&self, ids: &[u32], positions: &[usize], tables: &[&BlockTable], cache: &mut KvCache) -> Tensor<2> {
        let pass = Pass { independent_rows: true, ..self.pass(positions) };
        let lens: Vec<usize> = positions.iter().map(|p| p + 1).collect();
        let blocks: Vec<&[usize]> = tables.iter().map(|table| &***table).collect();
        let at = CacheView::new(&blocks, &lens);
        let slots = cache.slots(tables).into();
        let mut mixer = DecodeMixer { config: &self.config, at: &at, slots: &slots, cache };
        let hidden = self.net.forward(self.embed(ids, positions), &pass, &mut mixer);
        cache.moved(&slots);
        hidden
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

/// The operations of a prefill: over whole prompts, packed.
struct PrefillMixer<'a> {
    config: &'a DecoderConfig,
    layout: &'a Arc<Packed>,
    /// The row of the cache for each row of the layout.
    places: CacheRows,
    /// The slot of each prompt.
    slots: CacheRows,
    cache: &'a mut KvCache,
}

impl TokenMixer for PrefillMixer<'_> {
    fn attend(&mut self, layer: usize, [q, k, v]: [Tensor<3>; 3], sinks: Option<Tensor<1>>) -> Tensor<3> {
        self.cache.write(layer, &self.places, flat(&k), flat(&v));
        attention_of([q, k, v], sinks, self.layout, self.config.scoring(layer))
    }

    fn convolve(&mut self, layer: usize, x: Tensor<2>, w: Tensor<2>) -> Tensor<2> {
        let tails = conv_tails(&x, w.dims()[1], self.layout);
        self.cache.states().write_tails(layer, &self.slots, tails);
        causal_conv(x, w, self.layout)
    }

    fn delta_rule(&mut self, layer: usize, inputs: DeltaTensors) -> Tensor<2> {
        let layout = DeltaLayout { packed: self.layout.clone(), heads: self.config.delta_heads(layer) };
        let (y, states) = delta_rule_with_states(inputs, &layout);
        self.cache.states().write_states(layer, &self.slots, states);
        y
    }

    fn scan(&mut self, layer: usize, inputs: ScanTensors) -> Tensor<2> {
        let layout = ScanLayout { packed: self.layout.clone(), shape: self.config.scan_shape(layer) };
        let (y, states) = scan_with_states(inputs, &layout);
        self.cache.states().write_states(layer, &self.slots, states);
        y
    }
}

/// The operations of a decode step: of new tokens with all tokens before them.
struct DecodeMixer<'a> {
    config: &'a DecoderConfig,
    at: &'a CacheView<'a>,
    /// The slot of each row.
    slots: &'a SlotRows,
    cache: &'a mut KvCache,
}

impl TokenMixer for DecodeMixer<'_> {
    fn attend(&mut self, layer: usize, [q, k, v]: [Tensor<3>; 3], sinks: Option<Tensor<1>>) -> Tensor<3> {
        let sinks = sinks.map(Tensor::inner);
        self.cache.attend(layer, q, [flat(&k), flat(&v)], self.at, self.config.scoring(layer), sinks.as_ref())
    }

    fn convolve(&mut self, layer: usize, x: Tensor<2>, w: Tensor<2>) -> Tensor<2> {
        self.cache.states().convolve(layer, x, w, self.slots)
    }

    fn delta_rule(&mut self, layer: usize, inputs: DeltaTensors) -> Tensor<2> {
        let heads = self.config.delta_heads(layer);
        self.cache.states().delta_rule(layer, inputs, heads, self.slots)
    }

    fn scan(&mut self, layer: usize, inputs: ScanTensors) -> Tensor<2> {
        let shape = self.config.scan_shape(layer);
        self.cache.states().scan(layer, inputs, shape, self.slots)
    }
}

/// [rows, heads, d] -> [rows, heads · d]
fn flat(x: &Tensor<3>) -> Tensor<2> {
    x.clone().flatten(1, 2)
}
