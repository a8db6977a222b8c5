//! The selective scan from ordinary tensor operations, as GPUs run it: the chunks of `scan_head.rs`, with all stems at once and then
//! all branches at once. A padding row has a time step of 0, so it changes no state.
//!
//! The state of a segment is [segments, groups, state dim, heads of a group · head dim] here, so that the heads of a group share
//! one product with B or C.

use burn::tensor::{FloatDType, Tensor, activation};

use super::flex::cast;
use super::levels::{Padded, by_levels, mask};
use super::scan_inputs::{ScanLayout, ScanShape, ScanTensors};

/// Rows of a chunk.
const CHUNK: usize = 32;

/// x [rows, heads, head dim], B and C [rows, groups, state dim], time steps and g [rows, heads, 1], f32.
pub(super) struct PreparedScan {
    pub x: Tensor<3>,
    pub b: Tensor<3>,
    pub c: Tensor<3>,
    pub step: Tensor<3>,
    pub g: Tensor<3>,
    /// D·x, [rows, values].
    pub skipped: Tensor<2>,
}

impl PreparedScan {
    pub(super) fn new(inputs: ScanTensors, shape: ScanShape) -> Self {
        let ScanTensors { xbc, dt, a_log, dt_bias, skip } = inputs;
        let [xbc, dt] = [xbc, dt].map(|x| cast(x, FloatDType::F32));
        let rows = xbc.dims()[0];
        let (values, keys) = (shape.values(), shape.keys());
        let x = xbc.clone().narrow(1, 0, values).reshape([rows, shape.heads, shape.head_dim]);
        let shared = |first: usize| xbc.clone().narrow(1, first, keys).reshape([rows, shape.groups, shape.state_dim]);
        // softplus(x) = −log(sigmoid(−x))
        let step = -activation::log_sigmoid(-(dt + dt_bias.unsqueeze::<2>()));
        let [min, max] = shape.limits;
        let step = if min > 0.0 { step.clamp_min(min) } else { step };
        let step = if max.is_finite() { step.clamp_max(max) } else { step };
        let g = -(step.clone() * a_log.exp().unsqueeze::<2>());
        Self {
            skipped: (x.clone() * skip.reshape([1, shape.heads, 1])).reshape([rows, values]),
            b: shared(values),
            c: shared(values + keys),
            x,
            step: step.unsqueeze_dim(2),
            g: g.unsqueeze_dim(2),
        }
    }
}

/// [segments, heads, chunks, rows, head dim or 1] -> [segments, groups, chunks, rows, heads of a group · head dim].
fn grouped(x: Tensor<5>, shape: ScanShape) -> Tensor<5> {
    let [segments, heads, chunks, rows, d] = x.dims();
    let x = x.permute([0, 2, 3, 1, 4]);
    let x = if d == shape.head_dim { x } else { x.repeat_dim(4, shape.head_dim) };
    let columns = heads / shape.groups * shape.head_dim;
    x.reshape([segments, chunks, rows, shape.groups, columns]).permute([0, 3, 1, 2, 4])
}

/// Returns the outputs without D·x [segments · padded rows, values], and the states after the segments.
fn level(x: &PreparedScan, rows: &Padded, shape: ScanShape, initial: Option<Tensor<4>>) -> (Tensor<2>, Tensor<4>) {
    let device = x.x.device();
    let (segments, groups, per_group) = (rows.segments, shape.groups, shape.group());
    let present = rows.present(&device);
    let [b, c] = [&x.b, &x.c].map(|x| rows.chunked(x));
    let step = rows.chunked(&x.step) * present.clone();
    let g = rows.chunked(&x.g) * present;
    let u = rows.chunked(&x.x) * step;
    // Sums of g over j < k ≤ i, each by itself: differences of running sums would lose digits.
    let lower = mask(CHUNK, |i, j| i >= j, &device);
    let all_lower = lower.clone().expand([segments, shape.heads, rows.chunks, CHUNK, CHUNK]);
    let sums = all_lower.clone().matmul(g.clone() * mask(CHUNK, |k, j| k > j, &device));
    let from_start = all_lower.matmul(g);
    let to_end = sums.clone().narrow(3, CHUNK - 1, 1).swap_dims(3, 4).exp();
    let decay = sums.exp() * lower;
    // The outputs through the rows of the same chunk.
    let cb = c.clone().matmul(b.clone().swap_dims(3, 4)).reshape([segments, groups, 1, rows.chunks, CHUNK, CHUNK]);
    let decay = decay.reshape([segments, groups, per_group, rows.chunks, CHUNK, CHUNK]);
    let m = (cb * decay).reshape([segments, shape.heads, rows.chunks, CHUNK, CHUNK]);
    let inside = m.matmul(u.clone()).permute([0, 2, 3, 1, 4]).reshape([rows.len(), shape.values()]);
    // The state from chunk to chunk, and the outputs through it.
    let last = grouped(from_start.clone().narrow(3, CHUNK - 1, 1).exp(), shape);
    let (from_start, moved) = (grouped(from_start.exp(), shape), grouped(u * to_end, shape));
    let b = b.swap_dims(3, 4);
    let columns = per_group * shape.head_dim;
    let mut state = initial.unwrap_or_else(|| Tensor::zeros([segments, groups, shape.state_dim, columns], &device));
    let of_chunk = |x: &Tensor<5>, chunk: usize| x.clone().narrow(2, chunk, 1).squeeze_dim::<4>(2);
    let mut outputs = Vec::new();
    for chunk in 0..rows.chunks {
        outputs.push(of_chunk(&c, chunk).matmul(state.clone()) * of_chunk(&from_start, chunk));
        state = state * of_chunk(&last, chunk) + of_chunk(&b, chunk).matmul(of_chunk(&moved, chunk));
    }
    let through = Tensor::cat(outputs, 2).swap_dims(1, 2).reshape([rows.len(), shape.values()]);
    (inside + through, state)
}

/// Returns the outputs [rows, values], and the states after the stems [trees, heads · state dim · head dim].
pub(super) fn composed(inputs: ScanTensors, layout: &ScanLayout) -> (Tensor<2>, Tensor<2>) {
    let (dtype, shape) = (inputs.xbc.dtype(), layout.shape);
    let x = PreparedScan::new(inputs, shape);
    let (y, states) = by_levels(&layout.packed, CHUNK, &x.x.device(), |rows, initial| level(&x, rows, shape, initial));
    let trees = states.dims()[0];
    let states = states.reshape([trees, shape.groups, shape.state_dim, shape.group(), shape.head_dim]);
    let states = states.permute([0, 1, 3, 2, 4]).reshape([trees, shape.states()]);
    ((y + x.skipped).cast(dtype), states)
}
