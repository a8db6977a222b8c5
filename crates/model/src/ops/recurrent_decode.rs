//! One new token after another of recurrent layers (inference only): the state of each sequence is in a slot of a pool, and moves
//! past the token in place. Rows of one sequence are neighbours, and are processed in order. A row's result depends neither on
//! the other sequences nor on the number of rows of a step.

use std::ops::Range;

use burn::tensor::{FloatDType, Tensor};
use rayon::prelude::*;

use super::attention_flex::Out;
use super::causal_conv::add_products;
use super::decode::{CacheRows, in_place, write_rows};
use super::delta_chunk::{sigmoid, softplus};
use super::delta_inputs::{DeltaHeads, DeltaSlices, DeltaTensors, LENGTH_EPS};
use super::delta_rule_composed::Prepared;
use super::flex::{cast, f32s, flex_f32, index, tensor_from_vec, uninit, written};
use super::simd::{self, fma, multiversion};

/// The slot of each row's sequence.
pub(crate) struct SlotRows {
    pub(super) slots: Vec<usize>,
    /// The rows of each sequence.
    pub(super) sequences: Vec<Range<usize>>,
}

impl From<Vec<usize>> for SlotRows {
    fn from(slots: Vec<usize>) -> Self {
        let mut sequences: Vec<Range<usize>> = Vec::new();
        for (row, slot) in slots.iter().enumerate() {
            match sequences.last_mut() {
                Some(rows) if slots[rows.start] == *slot => rows.end = row + 1,
                _ => sequences.push(row..row + 1),
            }
        }
        Self { slots, sequences }
    }
}

impl SlotRows {
    /// The sequences' slots and numbers of rows.
    pub(crate) fn each(&self) -> impl Iterator<Item = (usize, usize)> {
        self.sequences.iter().map(|rows| (self.slots[rows.start], rows.len()))
    }

    /// The i-th rows of all sequences with more than i rows, for i = 0, 1, …
    fn rounds(&self) -> impl Iterator<Item = Vec<usize>> {
        let longest = self.sequences.iter().map(Range::len).max().unwrap_or(0);
        (0..longest).map(|i| self.sequences.iter().filter(|rows| i < rows.len()).map(|rows| rows.start + i).collect())
    }

    /// Computes rows round by round with `step`, which gets the rows and their slots, and puts the results in order.
    pub(super) fn by_rounds(&self, x: &Tensor<2>, mut step: impl FnMut(&[usize], &[usize]) -> Tensor<2>) -> Tensor<2> {
        let (mut place, mut done, mut outputs) = (vec![0; self.slots.len()], 0, Vec::new());
        for rows in self.rounds() {
            let slots: Vec<usize> = rows.iter().map(|row| self.slots[*row]).collect();
            outputs.push(step(&rows, &slots));
            rows.iter().for_each(|row| {
                place[*row] = done;
                done += 1;
            });
        }
        Tensor::cat(outputs, 0).select(0, index(place.into_iter(), &x.device()))
    }
}

/// Some rows of x.
pub(super) fn some(x: &Tensor<2>, rows: &[usize]) -> Tensor<2> {
    x.clone().select(0, index(rows.iter().copied(), &x.device()))
}

/// Convolves x [rows, channels] with w [channels, k] -> [rows, channels]. `tails` has the last inputs of each slot, oldest first,
/// [slots, (k − 1) · channels].
pub(crate) fn conv_step(x: Tensor<2>, w: Tensor<2>, tails: &mut Tensor<2>, at: &SlotRows) -> Tensor<2> {
    let ([rows, channels], [_, size]) = (x.dims(), w.dims());
    let taps = w.swap_dims(0, 1);
    if let (Some(xs), Some(w)) = (flex_f32(&x), flex_f32(&taps))
        && tails.dtype() == burn::tensor::DType::F32
    {
        let (xs, w, width) = (f32s(&xs), f32s(&w), (size - 1) * channels);
        let mut y = vec![0.0; rows * channels];
        in_place(tails, |tails| {
            for (row, slot) in at.slots.iter().enumerate() {
                let (x, y) = (&xs[row * channels..][..channels], &mut y[row * channels..][..channels]);
                let tail = &mut tails[slot * width..(slot + 1) * width];
                for (w, x) in w.chunks_exact(channels).zip(tail.chunks_exact(channels).chain([x])) {
                    add_products(w, x, y);
                }
                if width > 0 {
                    tail.copy_within(channels.., 0);
                    tail[width - channels..].copy_from_slice(x);
                }
            }
        });
        return tensor_from_vec(y, [rows, channels], &x.device());
    }
    at.by_rounds(&x, |rows, slots| {
        let (x, count) = (some(&x, rows), rows.len());
        let window = Tensor::cat(vec![some(tails, slots), cast(x.clone(), FloatDType::from(tails.dtype()))], 1);
        write_rows(tails, &CacheRows::from(slots.to_vec()), window.clone().narrow(1, channels, (size - 1) * channels));
        let products = window.reshape([count, size, channels]) * taps.clone().unsqueeze::<3>();
        products.sum_dim(1).reshape([count, channels])
    })
}

multiversion! {
    // S ← decay·S, and r += Sᵀk; S is [key dim, value dim].
    fn decay_and_read = decay_and_read_(decay: f32, k: &[f32], s: &mut [f32], r: &mut [f32]);
    // S ← S + k·uᵀ, and y += Sᵀq.
    fn write_and_read = write_and_read_(k: &[f32], u: &[f32], q: &[f32], s: &mut [f32], y: &mut [f32]);
}

#[inline(always)]
fn decay_and_read_<const F: bool>(decay: f32, k: &[f32], s: &mut [f32], r: &mut [f32]) {
    for (s, &k) in s.chunks_exact_mut(r.len()).zip(k) {
        for (s, r) in s.iter_mut().zip(r.iter_mut()) {
            *s *= decay;
            *r = fma::<F>(k, *s, *r);
        }
    }
}

#[inline(always)]
fn write_and_read_<const F: bool>(k: &[f32], u: &[f32], q: &[f32], s: &mut [f32], y: &mut [f32]) {
    for ((s, &k), &q) in s.chunks_exact_mut(y.len()).zip(k).zip(q) {
        for ((s, &u), y) in s.iter_mut().zip(u).zip(y.iter_mut()) {
            *s = fma::<F>(k, u, *s);
            *y = fma::<F>(q, *s, *y);
        }
    }
}

/// Computes the delta rule of new tokens -> [rows, values]. `states` has the state of each slot,
/// [slots, value heads · key dim · value dim], f32.
pub(crate) fn delta_step(inputs: DeltaTensors, heads: DeltaHeads, states: &mut Tensor<2>, at: &SlotRows) -> Tensor<2> {
    let (rows, device) = (at.slots.len(), inputs.qkv.device());
    if let Some(slices) = inputs.slices() {
        let x = DeltaSlices::new(&slices);
        let mut y = None;
        in_place(states, |states| y = Some(on_host(&x, heads, states, at)));
        return tensor_from_vec(y.expect("states are on the device of the inputs"), [rows, heads.values()], &device);
    }
    let dtype = inputs.qkv.dtype();
    let x = Prepared::new(inputs, heads);
    let flat = x.beta.clone();
    at.by_rounds(&flat, |rows, slots| {
        let (count, rows) = (rows.len(), index(rows.iter().copied(), &device));
        let part = |x: &Tensor<3>| x.clone().select(0, rows.clone());
        let gate = |x: &Tensor<2>| x.clone().select(0, rows.clone()).reshape([count, heads.value_heads, 1, 1]);
        let [q, k] = [&x.q, &x.k].map(|x| part(x).unsqueeze_dim::<4>(3));
        let v = part(&x.v).unsqueeze_dim::<4>(2);
        let state = some(states, slots).reshape([count, heads.value_heads, heads.key_dim, heads.value_dim]);
        let state = state * gate(&x.g).exp();
        let u = (v - (state.clone() * k.clone()).sum_dim(2)) * gate(&x.beta);
        let state = state + k * u;
        write_rows(states, &CacheRows::from(slots.to_vec()), state.clone().reshape([count, heads.states()]));
        (state * q).sum_dim(2).reshape([count, heads.values()])
    })
    .cast(dtype)
}

fn on_host(x: &DeltaSlices, heads: DeltaHeads, states: &mut [f32], at: &SlotRows) -> Vec<f32> {
    let (rows, size, d, dv) = (at.slots.len(), heads.states() / heads.value_heads, heads.key_dim, heads.value_dim);
    assert_eq!((x.qkv.len(), x.a.len(), x.b.len()), (rows * heads.width(), rows * heads.value_heads, rows * heads.value_heads));
    assert!(at.slots.iter().all(|slot| (slot + 1) * heads.states() <= states.len()));
    let mut y = uninit(rows * heads.values());
    let (out, states) = (Out(y.as_mut_ptr().cast()), Out(states.as_mut_ptr()));
    (0..at.sequences.len() * heads.value_heads).into_par_iter().for_each_init(
        || (vec![0.0; d], vec![0.0; d], vec![0.0; dv]),
        |(q, k, u), task| {
            let (sequence, head) = (&at.sequences[task / heads.value_heads], task % heads.value_heads);
            let (slot, key_head) = (at.slots[sequence.start], head / (heads.value_heads / heads.key_heads));
            // SAFETY: the state of a slot's head is this task's alone, and within the pool.
            let state = unsafe { std::slice::from_raw_parts_mut(states.at(slot * heads.states() + head * size), size) };
            let rate = x.a_log[head].exp();
            for row in sequence.clone() {
                for (part, (unit, length)) in [(&mut *q, (d as f32).powf(-0.5)), (&mut *k, 1.0)].into_iter().enumerate() {
                    let values = &x.qkv[row * heads.width() + part * heads.keys() + key_head * d..][..d];
                    let factor = 1.0 / (simd::dot(values, values) + LENGTH_EPS).sqrt();
                    simd::scaled(factor * length, values, unit);
                }
                let gate = row * heads.value_heads + head;
                let decay = (-rate * softplus(x.a[gate] + x.dt_bias[head])).exp();
                u.fill(0.0);
                decay_and_read(decay, k, state, u);
                let beta = sigmoid(x.b[gate]);
                u.iter_mut().zip(x.value(heads, head, row)).for_each(|(u, v)| *u = beta * (v - *u));
                // SAFETY: the row's head is this task's alone.
                let y = unsafe { out.zeroed(row * heads.values() + head * dv, dv) };
                write_and_read(k, u, q, state, y);
            }
        },
    );
    // SAFETY: the tasks have written every head of every row.
    unsafe { written(y) }
}
