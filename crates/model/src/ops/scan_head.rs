//! A head of a selective scan in one chunk of rows, in the form of matrices. With c the running sum of g = Δ·A in the chunk,
//! L_ij = e^(c_i − c_j) for i ≥ j and the state S₀ before the chunk:
//!
//! - M = lower(CBᵀ ∘ L) and U = diag(Δ)·X;
//! - Y = M·U + diag(e^c)·C·S₀ + D·X, and the state after it is e^(c_last)·S₀ + Bᵀ·diag(e^(c_last − c))·U.

use std::ops::Range;

use gemm::Parallelism::None as OneThread;

use super::chunks::sized;
use super::delta_chunk::softplus;
use super::flex::matmul as mm;
use super::scan_inputs::{ScanShape, ScanSlices};
use super::simd;

/// Consecutive heads of one group, which one task computes.
#[derive(Clone, Debug)]
pub(super) struct HeadBlock {
    pub group: usize,
    pub heads: Range<usize>,
}

/// Heads of a task: enough to share CBᵀ, few enough for several tasks.
const HEADS: usize = 8;

impl HeadBlock {
    /// The blocks of all heads, in order.
    pub(super) fn all(shape: ScanShape) -> Vec<Self> {
        let of_group = |group: usize| {
            let (first, end) = (group * shape.group(), (group + 1) * shape.group());
            (first..end).step_by(HEADS).map(move |first| Self { group, heads: first..end.min(first + HEADS) })
        };
        (0..shape.groups).flat_map(of_group).collect()
    }
}

/// A head's time steps and matrices of a chunk.
#[derive(Default)]
pub(super) struct ScanHead {
    /// dt + dt_bias, Δ, g, e^c and e^(c_last − c) of each row.
    pub raw: Vec<f32>,
    pub step: Vec<f32>,
    pub g: Vec<f32>,
    pub from_start: Vec<f32>,
    pub to_end: Vec<f32>,
    /// L and M, [n, n]; above the diagonal 0.
    pub decay: Vec<f32>,
    pub m: Vec<f32>,
    /// U, [n, head dim]
    pub u: Vec<f32>,
    scratch: Vec<f32>,
}

/// The time step Δ of a head in a row, and dt + dt_bias.
pub(super) fn time_step(x: &ScanSlices, shape: ScanShape, head: usize, row: usize) -> (f32, f32) {
    let raw = x.dt[row * shape.heads + head] + x.dt_bias[head];
    (softplus(raw).max(shape.limits[0]).min(shape.limits[1]), raw)
}

impl ScanHead {
    /// Computes time steps and matrices of a head. `cb` is CBᵀ [n, n].
    pub(super) fn load(&mut self, x: &ScanSlices, shape: ScanShape, head: usize, rows: &Range<usize>, cb: &[f32]) {
        let (n, p, rate) = (rows.len(), shape.head_dim, x.a_log[head].exp());
        let (mut sum, mut sums) = (0.0, Vec::with_capacity(n));
        [&mut self.raw, &mut self.step, &mut self.g].into_iter().for_each(|all| all.clear());
        sized(&mut self.u, n * p);
        for (row, u) in rows.clone().zip(self.u.chunks_exact_mut(p)) {
            let (step, raw) = time_step(x, shape, head, row);
            self.raw.push(raw);
            self.step.push(step);
            self.g.push(-rate * step);
            // Sums grow while their differences stay small: in f32, L would lose digits.
            sum += f64::from(-rate * step);
            sums.push(sum);
            simd::scaled(step, x.x(shape, head, row), u);
        }
        let power = |exponent: f64| (exponent as f32).exp();
        self.from_start.clear();
        self.from_start.extend(sums.iter().map(|c| power(*c)));
        self.to_end.clear();
        self.to_end.extend(sums.iter().map(|c| power(sums[n - 1] - c)));
        for buffer in [&mut self.decay, &mut self.m] {
            buffer.clear();
            buffer.resize(n * n, 0.0);
        }
        for i in 0..n {
            for j in 0..=i {
                let (at, decay) = (i * n + j, power(sums[i] - sums[j]));
                self.decay[at] = decay;
                self.m[at] = cb[at] * decay;
            }
        }
    }

    /// The rows of x [n, head dim], each times its factor, in a buffer of this head.
    pub(super) fn weighted(&mut self, x: &[f32], p: usize, factor: impl Fn(&Self, usize) -> f32) -> &[f32] {
        let mut scratch = std::mem::take(&mut self.scratch);
        sized(&mut scratch, x.len());
        for (i, (x, y)) in x.chunks_exact(p).zip(scratch.chunks_exact_mut(p)).enumerate() {
            simd::scaled(factor(self, i), x, y);
        }
        self.scratch = scratch;
        &self.scratch
    }

    /// U with the rows' decays to the end of the chunk, [n, head dim].
    pub(super) fn moved(&mut self, p: usize) -> &[f32] {
        let u = std::mem::take(&mut self.u);
        self.weighted(&u, p, |head, i| head.to_end[i]);
        self.u = u;
        &self.scratch
    }

    /// Moves the state past the chunk. `b` has B of the rows, `width` apart. Without `has_state`, the state is only written.
    pub(super) fn advance(&mut self, shape: ScanShape, b: &[f32], has_state: bool, state: &mut [f32]) {
        let (n, p, dim) = (self.step.len(), shape.head_dim, shape.state_dim);
        if has_state {
            simd::scale(self.from_start[n - 1], state);
        }
        mm((dim, p, n), state, (p, 1), has_state, b, (1, shape.width()), self.moved(p), (p, 1), OneThread);
    }
}
