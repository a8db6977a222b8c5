//! CPU kernels of the gated delta rule over packed rows. A task computes one key head, with its value heads, of a whole tree:
//! the stem first, then each branch from the stem's last state. The rows of a segment are processed in chunks
//! (`delta_chunk.rs`), one after another. Backward tasks take the chunks in reverse from the states that the forward pass kept at
//! the beginning of each; the gradients of all branches meet in the stem's last state, in order. Tasks write disjoint heads of
//! shared buffers through raw pointers.

use gemm::Parallelism::None as OneThread;

use super::attention_flex::Out;
use super::chunks::{Kept, chunks, copy, for_each, zeros};
use super::delta_chunk::{KeyChunk, ValueChunk, sigmoid};
use super::delta_inputs::{DeltaHeads, DeltaLayout, DeltaSlices};
use super::flex::{matmul as mm, matmul_ptr, uninit, written};
use super::simd;

/// Returns the outputs [rows, values], and the states that `kept` names.
pub(super) fn forward(x: &DeltaSlices, layout: &DeltaLayout, kept: Kept) -> (Vec<f32>, Vec<f32>) {
    let (packed, heads) = (&layout.packed, layout.heads);
    x.check(packed, heads);
    let (trees, count) = chunks(packed);
    let (group, size, dk, dv, width) = (heads.group(), heads.state(), heads.key_dim, heads.value_dim, heads.values());
    let mut y = uninit(packed.rows() * width);
    let mut states = uninit(
        heads.states()
            * match kept {
                Kept::Nothing => 0,
                Kept::Chunks => count,
                Kept::Ends => trees.len(),
            },
    );
    let (out, keep) = (Out(y.as_mut_ptr().cast()), Out(states.as_mut_ptr().cast()));
    for_each(packed, heads.key_heads, |tree, key_head, (keys, values): &mut (KeyChunk, ValueChunk)| {
        let mut state = vec![0.0; group * size];
        let mut stem = Vec::new();
        for (i, segment) in trees[tree].iter().enumerate() {
            if i > 0 {
                state.copy_from_slice(&stem);
            }
            for chunk in segment {
                keys.load(x, heads, key_head, &chunk.rows);
                let n = chunk.rows.len();
                for (head, state) in (key_head * group..).zip(state.chunks_exact_mut(size)) {
                    if let Some(index) = chunk.state.filter(|_| kept == Kept::Chunks) {
                        // SAFETY: this task alone writes the states of its heads before this chunk.
                        unsafe { copy(state, keep, (index * heads.value_heads + head) * size) };
                    }
                    let before = chunk.state.map(|_| &*state);
                    values.load(x, heads, head, keys, before);
                    let y = out.at(chunk.rows.start * width + head * dv);
                    // SAFETY: a row is in one chunk, and its head is this task's. All slices hold the shapes given.
                    unsafe {
                        if let Some(before) = before {
                            let q = values.weighted(&keys.q, dk, |chunk, i| chunk.from_start[i]).as_ptr();
                            matmul_ptr((n, dv, dk), y, (width, 1), false, q, (dk, 1), before.as_ptr(), (dv, 1), OneThread);
                        }
                        let (p, u) = (values.p.as_ptr(), values.u.as_ptr());
                        matmul_ptr((n, dv, n), y, (width, 1), before.is_some(), p, (n, 1), u, (dv, 1), OneThread);
                    }
                    values.advance(heads, keys, chunk.state.is_some(), state);
                }
            }
            if i == 0 {
                if kept == Kept::Ends {
                    // SAFETY: this task alone writes the states of its heads after this stem.
                    unsafe { copy(&state, keep, (tree * heads.value_heads + key_head * group) * size) };
                }
                if trees[tree].len() > 1 {
                    stem.clone_from(&state);
                }
            }
        }
    });
    // SAFETY: every row is in one chunk; the tasks have written all heads of it and all states that `kept` names.
    unsafe { (written(y), written(states)) }
}

/// The buffers of a thread in the backward pass.
#[derive(Default)]
struct Scratch {
    keys: KeyChunk,
    values: ValueChunk,
    /// Gradients of queries and keys of a chunk, [n, key dim].
    dq: Vec<f32>,
    dk: Vec<f32>,
    /// Gradients of QKᵀ and KKᵀ, [n, n], summed over the value heads.
    d_qk: Vec<f32>,
    d_kk: Vec<f32>,
    /// Rows of dy, and the gradient of U and of its right-hand side, [n, value dim].
    dy: Vec<f32>,
    du: Vec<f32>,
    /// Gradients of A and P, [n, n].
    da: Vec<f32>,
    dp: Vec<f32>,
    /// A product with a state, [n, key dim].
    by_state: Vec<f32>,
    /// Gradients of c (large ones cancel, so in f64) and of β.
    d_sums: Vec<f64>,
    d_beta: Vec<f32>,
}

/// The buffers of the gradients: those of qkv, a and b, and the parts of each tree in those of A_log and dt_bias.
struct Gradients {
    qkv: Out,
    a: Out,
    b: Out,
    parts: Out,
}

/// Returns the gradients of the inputs from the gradient of the outputs and the states that [`Kept::Chunks`] names.
pub(super) fn backward(x: &DeltaSlices, states: &[f32], dy: &[f32], layout: &DeltaLayout) -> [Vec<f32>; 5] {
    let (packed, heads) = (&layout.packed, layout.heads);
    x.check(packed, heads);
    assert_eq!(dy.len(), packed.rows() * heads.values());
    let (trees, count) = chunks(packed);
    assert_eq!(states.len(), count * heads.states());
    let (group, size) = (heads.group(), heads.state());
    let [mut d_qkv, mut d_a, mut d_b] = [x.qkv, x.a, x.b].map(|x| uninit(x.len()));
    let mut parts = vec![0.0; trees.len() * 2 * heads.value_heads];
    let [qkv, a, b] = [&mut d_qkv, &mut d_a, &mut d_b].map(|d| Out(d.as_mut_ptr().cast()));
    let out = Gradients { qkv, a, b, parts: Out(parts.as_mut_ptr()) };
    for_each(packed, heads.key_heads, |tree, key_head, scratch: &mut Scratch| {
        let (mut d_stem, mut d_state) = (vec![0.0; group * size], vec![0.0; group * size]);
        for (i, segment) in trees[tree].iter().enumerate().rev() {
            if i == 0 {
                d_state.copy_from_slice(&d_stem);
            } else {
                d_state.fill(0.0);
            }
            for chunk in segment.iter().rev() {
                let state = |head: usize| {
                    let first = (chunk.state? * heads.value_heads + head) * size;
                    Some(&states[first..first + size])
                };
                scratch.keys.load(x, heads, key_head, &chunk.rows);
                scratch.begin(heads);
                for (head, d_state) in (key_head * group..).zip(d_state.chunks_exact_mut(size)) {
                    scratch.value_head(x, heads, (tree, head), state(head), dy, d_state, &out);
                }
                scratch.end(heads, key_head, &out);
            }
            if i > 0 {
                simd::axpy(1.0, &d_state, &mut d_stem);
            }
        }
    });
    let mut sums = vec![0.0; 2 * heads.value_heads];
    parts.chunks_exact(sums.len()).for_each(|part| simd::axpy(1.0, part, &mut sums));
    let d_dt_bias = sums.split_off(heads.value_heads);
    // SAFETY: every row is in one chunk, and the tasks have written all heads of it.
    unsafe { [written(d_qkv), written(d_a), written(d_b), sums, d_dt_bias] }
}

impl Scratch {
    /// Begins a chunk whose keys are loaded.
    fn begin(&mut self, heads: DeltaHeads) {
        let n = self.keys.rows.len();
        for buffer in [&mut self.dq, &mut self.dk] {
            zeros(buffer, n * heads.key_dim);
        }
        for buffer in [&mut self.d_qk, &mut self.d_kk] {
            zeros(buffer, n * n);
        }
    }

    /// Goes back through a value head of the chunk. `d_state` is the gradient of the state after the chunk, and becomes that of
    /// the state before it.
    #[expect(clippy::too_many_arguments, reason = "the values of one head in one chunk")]
    fn value_head(
        &mut self,
        x: &DeltaSlices,
        heads: DeltaHeads,
        (tree, head): (usize, usize),
        state: Option<&[f32]>,
        dy: &[f32],
        d_state: &mut [f32],
        out: &Gradients,
    ) {
        let Self { keys, values: c, dq, dk, d_qk, d_kk, dy: rows_of_dy, du, da, dp, by_state, d_sums, d_beta } = self;
        let (n, d, dv) = (keys.rows.len(), heads.key_dim, heads.value_dim);
        c.load(x, heads, head, keys, state);
        rows_of_dy.clear();
        for row in keys.rows.clone() {
            rows_of_dy.extend_from_slice(&dy[row * heads.values() + head * dv..][..dv]);
        }
        let dy = &*rows_of_dy;
        let (d_sums, d_beta) = (zeros(d_sums, n), zeros(d_beta, n));
        // The gradient of U, then of the right-hand side of its equation: (I + A)ᵀ·dR = dU.
        let du = zeros(du, n * dv);
        let weighted = c.weighted(&keys.k, d, |c, i| c.to_end[i]);
        mm((n, dv, d), du, (dv, 1), false, weighted, (d, 1), d_state, (dv, 1), OneThread);
        mm((n, dv, n), du, (dv, 1), true, &c.p, (1, n), dy, (dv, 1), OneThread);
        for i in (1..n).rev() {
            let (before, row) = du.split_at_mut(i * dv);
            (0..i).for_each(|j| simd::axpy(-c.a[i * n + j], &row[..dv], &mut before[j * dv..(j + 1) * dv]));
        }
        let dr = &*du;
        // The gradients of A (negated here) and P, of D through both, and of QKᵀ and KKᵀ.
        for (left, d_matrix) in [(dr, &mut *da), (dy, &mut *dp)] {
            mm((n, n, dv), zeros(d_matrix, n * n), (n, 1), false, left, (dv, 1), &c.u, (1, dv), OneThread);
        }
        for i in 0..n {
            for j in 0..=i {
                let at = i * n + j;
                d_qk[at] += dp[at] * c.decay[at];
                let mut d_log = f64::from(dp[at]) * f64::from(c.p[at]);
                if j < i {
                    let by_decay = da[at] * c.decay[at];
                    d_kk[at] -= c.beta[i] * by_decay;
                    d_beta[i] -= by_decay * keys.kk[at];
                    d_log -= f64::from(da[at]) * f64::from(c.a[at]);
                }
                d_sums[i] += d_log;
                d_sums[j] -= d_log;
            }
        }
        // Products with the state after the chunk: its gradient through e^(c_last − c)·K·U.
        let by_state = zeros(by_state, n * d);
        mm((n, d, dv), by_state, (d, 1), false, &c.u, (dv, 1), d_state, (1, dv), OneThread);
        for i in 0..n {
            let row = i * d..(i + 1) * d;
            let d_log = f64::from(c.to_end[i] * simd::dot(&keys.k[row.clone()], &by_state[row.clone()]));
            d_sums[i] -= d_log;
            d_sums[n - 1] += d_log;
            simd::axpy(c.to_end[i], &by_state[row.clone()], &mut dk[row]);
        }
        match state {
            None => d_state.fill(0.0),
            Some(state) => {
                // Products with the state before it: through e^c·Q·S₀ and −β·e^c·K·S₀.
                d_sums[n - 1] += f64::from(c.from_start[n - 1] * simd::dot(state, d_state));
                mm((n, d, dv), by_state, (d, 1), false, dy, (dv, 1), state, (1, dv), OneThread);
                for (i, d_sum) in d_sums.iter_mut().enumerate() {
                    let row = i * d..(i + 1) * d;
                    *d_sum += f64::from(c.from_start[i] * simd::dot(&keys.q[row.clone()], &by_state[row.clone()]));
                    simd::axpy(c.from_start[i], &by_state[row.clone()], &mut dq[row]);
                }
                mm((n, d, dv), by_state, (d, 1), false, dr, (dv, 1), state, (1, dv), OneThread);
                for i in 0..n {
                    let row = i * d..(i + 1) * d;
                    let product = c.from_start[i] * simd::dot(&keys.k[row.clone()], &by_state[row.clone()]);
                    d_beta[i] -= product;
                    d_sums[i] -= f64::from(c.beta[i] * product);
                    simd::axpy(-c.beta[i] * c.from_start[i], &by_state[row.clone()], &mut dk[row]);
                }
                simd::scale(c.from_start[n - 1], d_state);
                let weighted = c.weighted(&keys.q, d, |c, i| c.from_start[i]);
                mm((d, dv, n), d_state, (dv, 1), true, weighted, (1, d), dy, (dv, 1), OneThread);
                let weighted = c.weighted(&keys.k, d, |c, i| -c.beta[i] * c.from_start[i]);
                mm((d, dv, n), d_state, (dv, 1), true, weighted, (1, d), dr, (dv, 1), OneThread);
            }
        }
        // g is in every later sum c of the chunk.
        let (rate, mut d_g) = (x.a_log[head].exp(), 0.0);
        for (i, row) in keys.rows.clone().enumerate().rev() {
            d_g += d_sums[i];
            let (gate, dr) = (row * heads.value_heads + head, &dr[i * dv..(i + 1) * dv]);
            let d_g = d_g as f32;
            let d_a = -rate * d_g * sigmoid(x.a[gate] + x.dt_bias[head]);
            let d_beta = d_beta[i] + simd::dot(dr, x.value(heads, head, row));
            let d_v = out.qkv.at(row * heads.width() + 2 * heads.keys() + head * dv);
            let part = 2 * tree * heads.value_heads + head;
            // SAFETY: the row's value head, its gates and the tree's part of the sums are this task's alone.
            unsafe {
                out.a.at(gate).write(d_a);
                out.b.at(gate).write(d_beta * c.beta[i] * (1.0 - c.beta[i]));
                *out.parts.at(part) += d_g * c.g[i];
                *out.parts.at(part + heads.value_heads) += d_a;
                (0..dv).for_each(|k| d_v.wrapping_add(k).write(c.beta[i] * dr[k]));
            }
        }
    }

    /// Ends a chunk: the gradients of its queries and keys.
    fn end(&mut self, heads: DeltaHeads, key_head: usize, out: &Gradients) {
        let Self { keys, dq, dk, d_qk, d_kk, .. } = self;
        let (n, d) = (keys.rows.len(), heads.key_dim);
        mm((n, d, n), dq, (d, 1), true, d_qk, (n, 1), &keys.k, (d, 1), OneThread);
        mm((n, d, n), dk, (d, 1), true, d_qk, (1, n), &keys.q, (d, 1), OneThread);
        mm((n, d, n), dk, (d, 1), true, d_kk, (n, 1), &keys.k, (d, 1), OneThread);
        mm((n, d, n), dk, (d, 1), true, d_kk, (1, n), &keys.k, (d, 1), OneThread);
        let length = (d as f32).powf(-0.5);
        let parts = [(&*dq, &keys.q, &keys.q_factor, length, 0), (&*dk, &keys.k, &keys.k_factor, 1.0, heads.keys())];
        for (gradient, unit, factors, length, first) in parts {
            for (i, row) in keys.rows.clone().enumerate() {
                let (gradient, unit) = (&gradient[i * d..(i + 1) * d], &unit[i * d..(i + 1) * d]);
                let along = simd::dot(gradient, unit) / length;
                let to = out.qkv.at(row * heads.width() + first + key_head * d);
                // SAFETY: the row's queries and keys of this head are this task's alone.
                (0..d).for_each(|k| unsafe {
                    to.wrapping_add(k).write(factors[i] * (length * gradient[k] - along * unit[k]));
                });
            }
        }
    }
}
