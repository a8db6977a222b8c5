//! AdamW with 8-bit moments, as in bitsandbytes: each block of 256 values shares a scale. A moment is stored as a code for one of
//! 256 values between −1 and 1, which are denser near 0.

use std::sync::LazyLock;

use rayon::prelude::*;

use super::adamw::{AdamW, AdamWConfig, constants};
use super::kind::OptimizerKind;
use super::rule::{Parameter, Rule, Slot, Step, StoredTensor, TrainedParam, UpdatedParam};
use burnish_model::nf4::dynamic_map;
use burnish_model::ops::{AdamwStep, tensor_from_vec, to_host};

pub(super) const ADAMW_8BIT: OptimizerKind = OptimizerKind {
    name: "AdamW8bit",
    aliases: &["adamw_8bit", "adamw_bnb_8bit"],
    doc: "AdamW with moments of one byte, and one scale per 256 of them; parameters with fewer than 4096 elements have float32 moments.\n\
          Formula: that of AdamW; a moment is code[i]·absmax of its block, and is rounded to the nearest code after the update.\n\
          Paper: Dettmers et al. 2022, arXiv:2110.02861.\n\
          verl: bitsandbytes.optim.AdamW8bit; the AdamW8bit of torchao has other codes.\n\
          TRL: optim=adamw_bnb_8bit.\n\
          When: a quarter of the memory of AdamW's state matters; on a GPU, the state and the update are the CPU's.",
    reads: &["betas", "eps", "weight_decay"],
    options: &[],
    build: |settings| Ok(Box::new(AdamW8bit(AdamW(AdamWConfig::from_settings(settings))))),
};

/// Values that share a scale.
const BLOCK: usize = 256;
/// Smallest size of a parameter with 8-bit moments.
const MIN_SIZE: usize = 4096;

struct AdamW8bit(AdamW);

impl Rule for AdamW8bit {
    fn sees_tensors(&self) -> bool {
        true
    }

    fn slots(&self, parameter: Parameter) -> Vec<Slot> {
        let size = parameter.size();
        let blocks = size.div_ceil(BLOCK);
        match size {
            ..MIN_SIZE => self.0.slots(parameter),
            _ => vec![
                Slot::u8("state1", size),
                Slot::f32("absmax1", blocks).for_each(BLOCK),
                Slot::u8("state2", size),
                Slot::f32("absmax2", blocks).for_each(BLOCK),
            ],
        }
    }

    fn splits(&self, _: Parameter) -> bool {
        true
    }

    fn update(&self, at: Step, trained: TrainedParam) -> UpdatedParam {
        if trained.parameter.size() < MIN_SIZE {
            return self.0.update(at, trained);
        }
        let TrainedParam { weight: w, gradient: g, state: previous, .. } = trained;
        // Size of a piece, if several ranks share the parameter; pieces are cut between blocks.
        let size = w.dims()[0];
        let constants = constants(&self.0.0, at.lr, at.number, at.grad_scale);
        let (device, mut weights, gradients) = (w.device(), to_host(w), to_host(g));
        let mut previous = previous.unwrap_or_default().into_iter();
        let mut moment = || Moment::from_state(previous.next(), previous.next(), size);
        let (mut first, mut second) = (moment(), moment());
        let blocks = weights.par_chunks_mut(BLOCK).zip(gradients.par_chunks(BLOCK)).zip(first.blocks()).zip(second.blocks());
        blocks.for_each(|(((w, g), m), v)| update_block(w, g, m, v, constants));
        let state =
            [first, second].into_iter().flat_map(|moment| [StoredTensor::Codes(moment.codes), StoredTensor::Host(moment.scales)]);
        (tensor_from_vec(weights, [size], &device), state.collect())
    }
}

/// A moment of a parameter: a code for each element, and a scale for each block.
struct Moment {
    codes: Vec<u8>,
    scales: Vec<f32>,
}

impl Moment {
    fn from_state(codes: Option<StoredTensor>, scales: Option<StoredTensor>, size: usize) -> Self {
        let codes = codes.map_or_else(|| vec![0; size], StoredTensor::codes);
        Self { codes, scales: scales.map_or_else(|| vec![0.0; size.div_ceil(BLOCK)], |scales| scales.values()) }
    }

    fn blocks(&mut self) -> impl IndexedParallelIterator<Item = (&mut [u8], &mut f32)> {
        self.codes.par_chunks_mut(BLOCK).zip(self.scales.par_iter_mut())
    }
}

/// Updates the weights and the moments of one block.
fn update_block(w: &mut [f32], g: &[f32], m: (&mut [u8], &mut f32), v: (&mut [u8], &mut f32), s: AdamwStep) {
    let (signed, unsigned) = (&*SIGNED, &*UNSIGNED);
    let mut first = [0f32; BLOCK];
    let mut second = [0f32; BLOCK];
    for i in 0..w.len() {
        let g = g[i] * s.grad_scale;
        first[i] = signed[m.0[i] as usize] * *m.1 * (1.0 - s.gain1) + g * s.gain1;
        second[i] = unsigned[v.0[i] as usize] * *v.1 * s.beta2 + g * g * s.gain2;
        let denominator = second[i].sqrt() / s.correction2_sqrt + s.eps;
        w[i] = w[i] * s.keep - first[i] / denominator * (s.lr / s.correction1);
    }
    quantize(&first[..w.len()], m, signed);
    quantize(&second[..w.len()], v, unsigned);
}

/// Rounds a block of values to codes; a value halfway between two codes gets the lower one.
fn quantize(values: &[f32], (codes, scale): (&mut [u8], &mut f32), map: &[f32; 256]) {
    *scale = values.iter().fold(0.0, |max, value| f32::max(max, value.abs()));
    let factor = 1.0 / scale.max(1e-38);
    for (code, value) in codes.iter_mut().zip(values) {
        let value = (value * factor).clamp(-1.0, 1.0);
        // The first code that is at least as near as its upper neighbour.
        let (mut low, mut high) = (0, 255);
        while low < high {
            let middle = (low + high) / 2;
            if (map[middle] + map[middle + 1]) / 2.0 < value { low = middle + 1 } else { high = middle }
        }
        *code = low as u8;
    }
}

static SIGNED: LazyLock<[f32; 256]> = LazyLock::new(|| dynamic_map(true));
static UNSIGNED: LazyLock<[f32; 256]> = LazyLock::new(|| dynamic_map(false));
