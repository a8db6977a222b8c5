//! The gated delta rule from ordinary tensor operations, as GPUs run it: the chunks of `delta_chunk.rs`, with all stems at once
//! and then all branches at once. Segments are padded to whole chunks; a padding row has β = 0 and g = 0, so it changes no state.

use burn::tensor::{FloatDType, Tensor, activation};

use super::delta_inputs::{DeltaHeads, DeltaLayout, DeltaTensors, LENGTH_EPS};
use super::flex::cast;
use super::levels::{Padded, by_levels, mask};

/// Rows of a chunk. The triangular equations of a chunk take one step per row.
const CHUNK: usize = 16;

/// Queries, keys [rows, value heads, key dim], values [rows, value heads, value dim], β and g [rows, value heads].
pub(super) struct Prepared {
    pub q: Tensor<3>,
    pub k: Tensor<3>,
    pub v: Tensor<3>,
    pub beta: Tensor<2>,
    pub g: Tensor<2>,
}

impl Prepared {
    pub(super) fn new(inputs: DeltaTensors, heads: DeltaHeads) -> Self {
        let DeltaTensors { qkv, a, b, a_log, dt_bias } = inputs;
        let [qkv, a, b] = [qkv, a, b].map(|x| cast(x, FloatDType::F32));
        let (rows, keys) = (qkv.dims()[0], heads.keys());
        let unit = |first: usize| {
            let x = qkv.clone().narrow(1, first, keys).reshape([rows, heads.key_heads, heads.key_dim]);
            let x = x.clone() / (x.square().sum_dim(2) + LENGTH_EPS).sqrt();
            let x = x.reshape([rows, heads.key_heads, 1, heads.key_dim]).repeat_dim(2, heads.group());
            x.reshape([rows, heads.value_heads, heads.key_dim])
        };
        // softplus(x) = −log(sigmoid(−x))
        let log_decay = activation::log_sigmoid(-(a + dt_bias.unsqueeze::<2>()));
        Self {
            q: unit(0) * (heads.key_dim as f32).powf(-0.5),
            k: unit(keys),
            v: qkv.clone().narrow(1, 2 * keys, heads.values()).reshape([rows, heads.value_heads, heads.value_dim]),
            beta: activation::sigmoid(b),
            g: log_decay * a_log.exp().unsqueeze::<2>(),
        }
    }
}

/// (I + A)⁻¹ of strictly lower triangular matrices A, row by row.
fn inverse(a: &Tensor<5>) -> Tensor<5> {
    let device = a.device();
    let unit = mask(CHUNK, |i, j| i == j, &device).expand(a.dims());
    let mut rows = unit.clone().narrow(3, 0, 1);
    for i in 1..CHUNK {
        let row = unit.clone().narrow(3, i, 1) - a.clone().narrow(3, i, 1).narrow(4, 0, i).matmul(rows.clone());
        rows = Tensor::cat(vec![rows, row], 3);
    }
    rows
}

/// Returns the outputs [segments · padded rows, values] and the states after the segments [segments, heads, key dim, value dim].
fn level(x: &Prepared, rows: &Padded, heads: DeltaHeads, initial: Option<Tensor<4>>) -> (Tensor<2>, Tensor<4>) {
    let device = x.q.device();
    let [q, k, v] = [&x.q, &x.k, &x.v].map(|x| rows.chunked(x));
    let present = rows.present(&device);
    let [beta, g] = [&x.beta, &x.g].map(|x| rows.chunked(&x.clone().unsqueeze_dim(2)) * present.clone());
    let lower = mask(CHUNK, |i, j| i >= j, &device);
    let sums = lower.clone().expand([rows.segments, heads.value_heads, rows.chunks, CHUNK, CHUNK]).matmul(g.clone());
    let last = sums.clone().narrow(3, CHUNK - 1, 1);
    // Above the diagonal, the difference is positive and could overflow before the mask.
    let differences = (sums.clone() - sums.clone().swap_dims(3, 4)) * lower.clone();
    let decay = differences.exp() * lower;
    let strict = mask(CHUNK, |i, j| i > j, &device);
    let products = |left: &Tensor<5>| left.clone().matmul(k.clone().swap_dims(3, 4)) * decay.clone();
    let solved = inverse(&(products(&k) * beta.clone() * strict));
    let p = products(&q);
    let own = solved.clone().matmul(v * beta.clone());
    let read = solved.matmul(k.clone() * beta * sums.clone().exp());
    let q = q * sums.clone().exp();
    let k = k * (last.clone() - sums).exp();
    let state_shape = [rows.segments, heads.value_heads, heads.key_dim, heads.value_dim];
    let mut state = initial.unwrap_or_else(|| Tensor::zeros(state_shape, &device));
    let of_chunk = |x: &Tensor<5>, chunk: usize| x.clone().narrow(2, chunk, 1).squeeze_dim::<4>(2);
    let mut outputs = Vec::new();
    for chunk in 0..rows.chunks {
        let u = of_chunk(&own, chunk) - of_chunk(&read, chunk).matmul(state.clone());
        outputs.push(of_chunk(&q, chunk).matmul(state.clone()) + of_chunk(&p, chunk).matmul(u.clone()));
        state = state * of_chunk(&last, chunk).exp() + of_chunk(&k, chunk).swap_dims(2, 3).matmul(u);
    }
    // [segments, heads, rows, value dim] -> [segments · rows, heads · value dim]
    let y = Tensor::cat(outputs, 2).swap_dims(1, 2).reshape([rows.len(), heads.values()]);
    (y, state)
}

/// Returns the outputs [rows, values], and the states after the stems [trees, value heads · key dim · value dim].
pub(super) fn composed(inputs: DeltaTensors, layout: &DeltaLayout) -> (Tensor<2>, Tensor<2>) {
    let (dtype, heads) = (inputs.qkv.dtype(), layout.heads);
    let x = Prepared::new(inputs, heads);
    let (y, states) = by_levels(&layout.packed, CHUNK, &x.q.device(), |rows, initial| level(&x, rows, heads, initial));
    let count = states.dims()[0];
    (y.cast(dtype), states.reshape([count, heads.states()]))
}
