//! The selective scan of one new token after another (inference only); see `recurrent_decode.rs`.

use burn::tensor::Tensor;
use rayon::prelude::*;

use super::attention_flex::Out;
use super::decode::{CacheRows, in_place, write_rows};
use super::flex::{index, tensor_from_vec, uninit, written};
use super::recurrent_decode::{SlotRows, some};
use super::scan_composed::PreparedScan;
use super::scan_head::time_step;
use super::scan_inputs::{ScanShape, ScanSlices, ScanTensors};
use super::simd::{self, fma, multiversion};

multiversion! {
    // S ← decay·S + b·uᵀ, and y += Sᵀc; S is [state dim, head dim].
    fn move_and_read = move_and_read_(decay: f32, b: &[f32], u: &[f32], c: &[f32], s: &mut [f32], y: &mut [f32]);
}

#[inline(always)]
fn move_and_read_<const F: bool>(decay: f32, b: &[f32], u: &[f32], c: &[f32], s: &mut [f32], y: &mut [f32]) {
    for ((s, &b), &c) in s.chunks_exact_mut(y.len()).zip(b).zip(c) {
        for ((s, &u), y) in s.iter_mut().zip(u).zip(y.iter_mut()) {
            *s = fma::<F>(b, u, *s * decay);
            *y = fma::<F>(c, *s, *y);
        }
    }
}

/// Computes the scan of new tokens -> [rows, values]. `states` has the state of each slot, [slots, heads · state dim · head dim], f32.
pub(crate) fn scan_step(inputs: ScanTensors, shape: ScanShape, states: &mut Tensor<2>, at: &SlotRows) -> Tensor<2> {
    let (rows, device) = (at.slots.len(), inputs.xbc.device());
    if let Some(slices) = inputs.slices() {
        let x = ScanSlices::new(&slices);
        let mut y = None;
        in_place(states, |states| y = Some(on_host(&x, shape, states, at)));
        return tensor_from_vec(y.expect("states are on the device of the inputs"), [rows, shape.values()], &device);
    }
    let dtype = inputs.xbc.dtype();
    let x = PreparedScan::new(inputs, shape);
    let y = at.by_rounds(&x.skipped, |rows, slots| {
        let (count, rows) = (rows.len(), index(rows.iter().copied(), &device));
        let part = |x: &Tensor<3>| x.clone().select(0, rows.clone());
        // Of each head, [count, heads, state dim, 1].
        let of_heads = |x: &Tensor<3>| {
            let x = part(x).reshape([count, shape.groups, 1, shape.state_dim]).repeat_dim(2, shape.group());
            x.reshape([count, shape.heads, shape.state_dim, 1])
        };
        let u = (part(&x.x) * part(&x.step)).reshape([count, shape.heads, 1, shape.head_dim]);
        let decay = part(&x.g).exp().reshape([count, shape.heads, 1, 1]);
        let state = some(states, slots).reshape([count, shape.heads, shape.state_dim, shape.head_dim]);
        let state = state * decay + of_heads(&x.b) * u;
        write_rows(states, &CacheRows::from(slots.to_vec()), state.clone().reshape([count, shape.states()]));
        (state * of_heads(&x.c)).sum_dim(2).reshape([count, shape.values()])
    });
    (y + x.skipped).cast(dtype)
}

fn on_host(x: &ScanSlices, shape: ScanShape, states: &mut [f32], at: &SlotRows) -> Vec<f32> {
    let (rows, p, size) = (at.slots.len(), shape.head_dim, shape.states() / shape.heads);
    x.check(rows, shape);
    assert!(at.slots.iter().all(|slot| (slot + 1) * shape.states() <= states.len()));
    let mut y = uninit(rows * shape.values());
    let (out, states) = (Out(y.as_mut_ptr().cast()), Out(states.as_mut_ptr()));
    (0..at.sequences.len() * shape.heads).into_par_iter().for_each_init(
        || vec![0.0; p],
        |u, task| {
            let (sequence, head) = (&at.sequences[task / shape.heads], task % shape.heads);
            let (slot, group) = (at.slots[sequence.start], head / shape.group());
            // SAFETY: the state of a slot's head is this task's alone, and within the pool.
            let state = unsafe { std::slice::from_raw_parts_mut(states.at(slot * shape.states() + head * size), size) };
            let rate = x.a_log[head].exp();
            for row in sequence.clone() {
                let (step, _) = time_step(x, shape, head, row);
                let own = x.x(shape, head, row);
                simd::scaled(step, own, u);
                let [b, c] = [x.b(shape, group, row), x.c(shape, group, row)].map(|x| &x[..shape.state_dim]);
                // SAFETY: the row's head is this task's alone.
                let y = unsafe { out.zeroed(row * shape.values() + head * p, p) };
                move_and_read((-rate * step).exp(), b, u, c, state, y);
                simd::axpy(x.skip[head], own, y);
            }
        },
    );
    // SAFETY: the tasks have written every head of every row.
    unsafe { written(y) }
}
