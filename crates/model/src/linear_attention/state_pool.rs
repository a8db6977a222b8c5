//! The states of recurrent layers, for each sequence that is being generated: the last inputs of its convolutions and the states
//! of its delta rules or scans. A sequence owns a slot of the pool; a fork copies it.

use burn::tensor::{Device, Tensor};

use super::recurrent_config::RecurrentKind;
use crate::config::DecoderConfig;
use crate::ops::{
    CacheRows, DeltaHeads, DeltaTensors, ScanShape, ScanTensors, SlotRows, conv_step, copy_rows, delta_step, scan_step,
    write_rows,
};

/// The state of a layer, f32; `None` while the pool has no slot, or if the kind of layer has no such state.
#[derive(Default)]
struct LayerStates {
    /// The last inputs of the convolution, oldest first, [slots, (k − 1) · channels].
    tails: Option<Tensor<2>>,
    /// [slots, value heads · key dim · value dim], or [slots, heads · state dim · head dim].
    states: Option<Tensor<2>>,
}

/// The recurrent states of all sequences.
pub(crate) struct StatePool {
    /// One for each recurrent layer.
    layers: Vec<LayerStates>,
    /// For each layer of the model, its index in `layers`; 0 for layers of attention.
    index: Vec<usize>,
    /// The widths of tails and states.
    widths: [usize; 2],
    device: Device,
    /// The number of tokens that each slot's states have seen.
    seen: Vec<usize>,
    free: Vec<usize>,
}

impl StatePool {
    /// Creates an empty pool, which grows automatically; `None` for a model without recurrent layers.
    pub(crate) fn new(config: &DecoderConfig, device: &Device) -> Option<Self> {
        let recurrent = config.recurrent_layers.as_ref()?;
        let (channels, size) = recurrent.kind.convolution(config.hidden_size);
        let mut count = 0;
        let index = recurrent.layers.iter().map(|is_recurrent| {
            count += usize::from(*is_recurrent);
            count.saturating_sub(1)
        });
        let index: Vec<usize> = index.collect();
        Some(Self {
            layers: (0..count).map(|_| LayerStates::default()).collect(),
            index,
            widths: [(size - 1) * channels, recurrent.kind.states()],
            device: device.clone(),
            seen: Vec::new(),
            free: Vec::new(),
        })
    }

    /// The number of slots in use.
    pub(crate) fn used(&self) -> usize {
        self.seen.len() - self.free.len()
    }

    /// The number of tokens that a slot's states have seen.
    pub(crate) fn seen(&self, slot: usize) -> usize {
        self.seen[slot]
    }

    /// Takes a slot whose values are unspecified.
    fn slot(&mut self) -> usize {
        if self.free.is_empty() {
            self.grow((self.seen.len() / 4).max(4));
        }
        self.free.pop().expect("the pool has just grown")
    }

    /// Takes a slot for a sequence that has no tokens yet.
    pub(crate) fn take(&mut self) -> usize {
        let slot = self.slot();
        self.seen[slot] = 0;
        let (device, widths, place) = (&self.device, self.widths, CacheRows::from(vec![slot]));
        for layer in &mut self.layers {
            for (values, width) in [&mut layer.tails, &mut layer.states].into_iter().zip(widths) {
                if let Some(values) = values {
                    write_rows(values, &place, Tensor::zeros([1, width], device));
                }
            }
        }
        slot
    }

    /// Takes a slot for each of these slots, and copies them.
    pub(crate) fn copies(&mut self, of: &[usize]) -> Vec<usize> {
        let slots: Vec<usize> = of.iter().map(|_| self.slot()).collect();
        of.iter().zip(&slots).for_each(|(from, to)| self.seen[*to] = self.seen[*from]);
        let (from, to) = (CacheRows::from(of.to_vec()), CacheRows::from(slots.clone()));
        for layer in &mut self.layers {
            [&mut layer.tails, &mut layer.states].into_iter().flatten().for_each(|values| copy_rows(values, &from, &to));
        }
        slots
    }

    /// Releases the slot of a sequence that ended.
    pub(crate) fn release(&mut self, slot: usize) {
        self.free.push(slot);
    }

    fn grow(&mut self, more: usize) {
        let (device, widths) = (&self.device, self.widths);
        for layer in &mut self.layers {
            for (values, width) in [&mut layer.tails, &mut layer.states].into_iter().zip(widths) {
                if width == 0 {
                    continue;
                }
                let rows = Tensor::zeros([more, width], device);
                *values = Some(match values.take() {
                    Some(old) => Tensor::cat(vec![old, rows], 0),
                    None => rows,
                });
            }
        }
        let first = self.seen.len();
        self.seen.resize(first + more, 0);
        self.free.extend((first..first + more).rev());
    }

    /// Records that the states of these slots have moved past tokens.
    pub(crate) fn moved(&mut self, by: impl Iterator<Item = (usize, usize)>) {
        by.for_each(|(slot, tokens)| self.seen[slot] += tokens);
    }

    /// Writes the last inputs of a layer's convolution, one row for each slot.
    pub(crate) fn write_tails(&mut self, layer: usize, slots: &CacheRows, tails: Tensor<2>) {
        if let Some(to) = &mut self.layers[self.index[layer]].tails {
            write_rows(to, slots, tails);
        }
    }

    /// Writes the states of a layer's delta rule or scan, one row for each slot.
    pub(crate) fn write_states(&mut self, layer: usize, slots: &CacheRows, states: Tensor<2>) {
        if let Some(to) = &mut self.layers[self.index[layer]].states {
            write_rows(to, slots, states);
        }
    }

    /// The convolution of new tokens (see [`conv_step`]).
    pub(crate) fn convolve(&mut self, layer: usize, x: Tensor<2>, w: Tensor<2>, at: &SlotRows) -> Tensor<2> {
        match &mut self.layers[self.index[layer]].tails {
            Some(tails) => conv_step(x, w, tails, at),
            // A convolution over one token has no earlier inputs.
            None => x * w.swap_dims(0, 1),
        }
    }

    /// The delta rule of new tokens (see [`delta_step`]).
    pub(crate) fn delta_rule(&mut self, layer: usize, inputs: DeltaTensors, heads: DeltaHeads, at: &SlotRows) -> Tensor<2> {
        let states = self.layers[self.index[layer]].states.as_mut().expect("a sequence has a slot");
        delta_step(inputs, heads, states, at)
    }

    /// The scan of new tokens (see [`scan_step`]).
    pub(crate) fn scan(&mut self, layer: usize, inputs: ScanTensors, shape: ScanShape, at: &SlotRows) -> Tensor<2> {
        let states = self.layers[self.index[layer]].states.as_mut().expect("a sequence has a slot");
        scan_step(inputs, shape, states, at)
    }
}

impl RecurrentKind {
    /// The elements of a sequence's state in one layer.
    pub(crate) fn state_elements(self, h: usize) -> usize {
        let (channels, size) = self.convolution(h);
        (size - 1) * channels + self.states()
    }
}
