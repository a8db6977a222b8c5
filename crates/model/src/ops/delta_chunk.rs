//! A chunk of the gated delta rule on the CPU: consecutive rows of a sequence, whose updates are solved together (the WY form of
//! Yang et al. 2024, <https://arxiv.org/abs/2412.06464>). With c the running sum of g in the chunk, D_ij = e^(c_i − c_j) for i ≥ j
//! and the state S₀ before the chunk:
//!
//! - A = strictly lower(diag(β)·(KKᵀ ∘ D)), P = lower(QKᵀ ∘ D);
//! - (I + A)·U = diag(β)·V − diag(β·e^c)·K·S₀;
//! - Y = diag(e^c)·Q·S₀ + P·U, and the state after it is e^(c_last)·S₀ + (diag(e^(c_last − c))·K)ᵀ·U.

use std::ops::Range;

use gemm::Parallelism::None as OneThread;

use super::chunks::sized;
use super::delta_inputs::{DeltaHeads, DeltaSlices, LENGTH_EPS};
use super::flex::matmul as mm;
use super::simd;

/// The part of a chunk that the value heads of one key head share.
#[derive(Default)]
pub(super) struct KeyChunk {
    pub rows: Range<usize>,
    /// Queries of length 1/√d and keys of length 1, [n, key dim], and the factors that gave keys and queries their lengths.
    pub q: Vec<f32>,
    pub k: Vec<f32>,
    pub q_factor: Vec<f32>,
    pub k_factor: Vec<f32>,
    /// QKᵀ and KKᵀ, [n, n].
    pub qk: Vec<f32>,
    pub kk: Vec<f32>,
}

/// Writes the rows of x to `out` with length `length`, and their factors.
fn normalised(x: impl Iterator<Item = Range<usize>>, of: &[f32], length: f32, out: &mut [f32], factors: &mut [f32]) {
    for (i, range) in x.enumerate() {
        let row = &of[range];
        factors[i] = 1.0 / (simd::dot(row, row) + LENGTH_EPS).sqrt();
        simd::scaled(factors[i] * length, row, &mut out[i * row.len()..(i + 1) * row.len()]);
    }
}

impl KeyChunk {
    pub(super) fn load(&mut self, x: &DeltaSlices, heads: DeltaHeads, head: usize, rows: &Range<usize>) {
        let (n, d, width) = (rows.len(), heads.key_dim, heads.width());
        self.rows = rows.clone();
        let part = |first: usize| rows.clone().map(move |row| row * width + first..row * width + first + d);
        let length = (d as f32).powf(-0.5);
        normalised(part(head * d), x.qkv, length, sized(&mut self.q, n * d), sized(&mut self.q_factor, n));
        normalised(part(heads.keys() + head * d), x.qkv, 1.0, sized(&mut self.k, n * d), sized(&mut self.k_factor, n));
        for (left, product) in [(&self.q, &mut self.qk), (&self.k, &mut self.kk)] {
            mm((n, n, d), sized(product, n * n), (n, 1), false, left, (d, 1), &self.k, (1, d), OneThread);
        }
    }
}

/// A value head's gates and matrices of a chunk.
#[derive(Default)]
pub(super) struct ValueChunk {
    /// sigmoid(b), g, e^c and e^(c_last − c) of each row.
    pub beta: Vec<f32>,
    pub g: Vec<f32>,
    pub from_start: Vec<f32>,
    pub to_end: Vec<f32>,
    /// D, A and P, [n, n]; above the diagonal 0.
    pub decay: Vec<f32>,
    pub a: Vec<f32>,
    pub p: Vec<f32>,
    /// U, [n, value dim]
    pub u: Vec<f32>,
    scratch: Vec<f32>,
}

pub(super) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// log(1 + e^x), without overflow.
pub(super) fn softplus(x: f32) -> f32 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

impl ValueChunk {
    /// Computes gates and matrices of a value head, and solves for U.
    pub(super) fn load(&mut self, x: &DeltaSlices, heads: DeltaHeads, head: usize, keys: &KeyChunk, state: Option<&[f32]>) {
        let n = keys.rows.len();
        let gate = |row: usize| row * heads.value_heads + head;
        let rate = x.a_log[head].exp();
        self.beta.clear();
        self.beta.extend(keys.rows.clone().map(|row| sigmoid(x.b[gate(row)])));
        self.g.clear();
        self.g.extend(keys.rows.clone().map(|row| -rate * softplus(x.a[gate(row)] + x.dt_bias[head])));
        // Sums grow while their differences stay small: in f32, D would lose digits.
        let mut sum = 0.0;
        let running = |g: &f32| {
            sum += f64::from(*g);
            sum
        };
        let sums: Vec<f64> = self.g.iter().map(running).collect();
        let power = |exponent: f64| (exponent as f32).exp();
        self.from_start.clear();
        self.from_start.extend(sums.iter().map(|c| power(*c)));
        self.to_end.clear();
        self.to_end.extend(sums.iter().map(|c| power(sums[n - 1] - c)));
        for buffer in [&mut self.decay, &mut self.a, &mut self.p] {
            buffer.clear();
            buffer.resize(n * n, 0.0);
        }
        for i in 0..n {
            for j in 0..=i {
                let (at, decay) = (i * n + j, power(sums[i] - sums[j]));
                self.decay[at] = decay;
                self.p[at] = keys.qk[at] * decay;
                self.a[at] = if j < i { self.beta[i] * keys.kk[at] * decay } else { 0.0 };
            }
        }
        self.solve(x, heads, head, keys, state);
    }

    fn solve(&mut self, x: &DeltaSlices, heads: DeltaHeads, head: usize, keys: &KeyChunk, state: Option<&[f32]>) {
        let (n, dk, dv) = (keys.rows.len(), heads.key_dim, heads.value_dim);
        let u = sized(&mut self.u, n * dv);
        if let Some(state) = state {
            mm((n, dv, dk), u, (dv, 1), false, &keys.k, (dk, 1), state, (dv, 1), OneThread);
        }
        for (i, row) in keys.rows.clone().enumerate() {
            let v = x.value(heads, head, row);
            let u = &mut u[i * dv..(i + 1) * dv];
            match state {
                Some(_) => simd::scale(-self.beta[i] * self.from_start[i], u),
                None => u.fill(0.0),
            }
            simd::axpy(self.beta[i], v, u);
        }
        for i in 1..n {
            let (before, row) = u.split_at_mut(i * dv);
            (0..i).for_each(|j| simd::axpy(-self.a[i * n + j], &before[j * dv..(j + 1) * dv], &mut row[..dv]));
        }
    }

    /// The rows of x [n, d], each times its factor, in a buffer of this chunk.
    pub(super) fn weighted(&mut self, x: &[f32], d: usize, factor: impl Fn(&Self, usize) -> f32) -> &[f32] {
        let mut scratch = std::mem::take(&mut self.scratch);
        sized(&mut scratch, x.len());
        for (i, (x, y)) in x.chunks_exact(d).zip(scratch.chunks_exact_mut(d)).enumerate() {
            simd::scaled(factor(self, i), x, y);
        }
        self.scratch = scratch;
        &self.scratch
    }

    /// Moves the state past the chunk: `state` is `None` before the first token, and its values are then set.
    pub(super) fn advance(&mut self, heads: DeltaHeads, keys: &KeyChunk, has_state: bool, state: &mut [f32]) {
        let (n, dk, dv) = (keys.rows.len(), heads.key_dim, heads.value_dim);
        let last = self.from_start[n - 1];
        simd::scale(if has_state { last } else { 0.0 }, state);
        self.weighted(&keys.k, dk, |chunk, i| chunk.to_end[i]);
        mm((dk, dv, n), state, (dv, 1), true, &self.scratch, (1, dk), &self.u, (dv, 1), OneThread);
    }
}
