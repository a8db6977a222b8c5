//! Comparisons of two rows of logits: a divergence, one cube per pair of rows, and its gradient in place of the first row. The
//! formulas are the same as in the CPU's [row kernels](crate::ops::simd_divergence), which explain them.

use burn::backend::Cube;
use burn::tensor::Tensor;
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::chunk::{Chunk, LogitRows, ROW_STATS, Targets, gradient_inputs_at, logit, through_cap};
use super::exact::{exp, exp_m1, ln_1p};
use super::launch::{buffer, cube_of, elem, grid, row_of_cube, units_of};
use super::sum::sum_of_units;

/// The number of values that [`Chunk::divergence`] computes for each row, in order: the divergence D, and for Jensen-Shannon KL(p
/// ‖ m).
pub(crate) const PAIR_STATS: usize = 2;

/// The number of values of the second row that [`Chunk::compared_gradients`] reads, in order: its largest logit, the logarithm of
/// the rest of its sum, the gradient of D, and D (for Jensen-Shannon KL(p ‖ m)).
pub(crate) const REFERENCE_INPUTS: usize = 4;

/// The divergences between p, the distribution of the first row, and q, the distribution of the second row.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum DivergenceKind {
    /// KL(p ‖ q)
    Reverse,
    /// KL(q ‖ p)
    Forward,
    /// β·KL(q ‖ m) + (1 − β)·KL(p ‖ m) with m = (1 − β)·p + β·q
    JensenShannon,
}

/// log(p/m) and log(q/m).
#[derive(CubeType)]
struct Mixture {
    of_p: f32,
    of_q: f32,
}

/// With d = log p − log q: log(m/q) = ln(1 + (1 − β)·(e^d − 1)) for d ≤ 0; log(m/p) = ln(1 + β·(e^−d − 1)) for d > 0.
#[cube]
fn from_mixture(log_p: f32, log_q: f32, beta: f32) -> Mixture {
    let d = log_p - log_q;
    let mut weight = 1f32 - beta;
    if d > 0f32 {
        weight = beta;
    }
    let l = ln_1p(weight * exp_m1(-d.abs()));
    let mut mixture = Mixture { of_p: d - l, of_q: -l };
    if d > 0f32 {
        mixture.of_p = -l;
        mixture.of_q = -d - l;
    }
    mixture
}

/// A token's contribution to the [`PAIR_STATS`] values.
#[derive(CubeType)]
struct PairTerms {
    divergence: f32,
    of_p: f32,
}

#[cube]
fn pair_terms(log_p: f32, log_q: f32, beta: f32, #[comptime] kind: DivergenceKind) -> PairTerms {
    let (p, q) = (exp(log_p), exp(log_q));
    match kind {
        DivergenceKind::Reverse => PairTerms { divergence: p * (log_p - log_q) + (q - p), of_p: 0f32 },
        DivergenceKind::Forward => PairTerms { divergence: q * (log_q - log_p) + (p - q), of_p: 0f32 },
        DivergenceKind::JensenShannon => {
            let mixture = from_mixture(log_p, log_q, beta);
            PairTerms {
                divergence: beta * q * mixture.of_q + (1f32 - beta) * p * mixture.of_p,
                of_p: p * mixture.of_p + beta * (q - p),
            }
        }
    }
}

/// The derivative of D by a logit of p. `known` is D, for Jensen-Shannon KL(p ‖ m).
#[cube]
fn slope(log_p: f32, log_q: f32, known: f32, beta: f32, #[comptime] kind: DivergenceKind) -> f32 {
    match kind {
        DivergenceKind::Reverse => exp(log_p) * ((log_p - log_q) - known),
        DivergenceKind::Forward => exp(log_p) - exp(log_q),
        DivergenceKind::JensenShannon => exp(log_p) * ((1f32 - beta) * (from_mixture(log_p, log_q, beta).of_p - known)),
    }
}

/// Reads the results of [`row_stats`](super::head) of the first row at `p` and of the second at `q` (in rows), and writes from
/// `to` on.
#[cube(launch)]
fn row_divergence<X: Float, Y: Float>(
    x: &[X],
    y: &[Y],
    stats: &mut [f32],
    p: usize,
    q: usize,
    to: usize,
    logits: LogitRows,
    logits_y: LogitRows,
    beta: f32,
    #[comptime] kind: DivergenceKind,
    #[comptime] units: usize,
    #[define(X, Y)] _dtypes: [ElemType; 2],
) {
    let row = row_of_cube(logits.rows);
    let mut scratch = Shared::<[f32]>::new_slice(units);
    let (of_p, of_q) = ((p + row) * ROW_STATS, (q + row) * ROW_STATS);
    let (p_max, p_rest) = (stats[of_p], stats[of_p + 1]);
    let (q_max, q_rest) = (stats[of_q], stats[of_q + 1]);
    let (start, y_start) = (row * logits.stride, row * logits_y.stride);
    let mut sum = PairTerms { divergence: 0f32, of_p: 0f32 };
    let mut i = UNIT_POS as usize;
    while i < logits.v {
        let log_p = (logit::<X>(x[start + i], logits) - p_max) - p_rest;
        let log_q = (logit::<Y>(y[y_start + i], logits_y) - q_max) - q_rest;
        let part = pair_terms(log_p, log_q, beta, kind);
        sum.divergence += part.divergence;
        sum.of_p += part.of_p;
        i += units;
    }
    let divergence = sum_of_units(sum.divergence, &mut scratch, units);
    let of_p = sum_of_units(sum.of_p, &mut scratch, units);
    if UNIT_POS == 0 {
        let at = to + row * PAIR_STATS;
        stats[at] = divergence;
        stats[at + 1] = of_p;
    }
}

/// d = g_logp·onehot − p·(g_H·log p + constant) + g_D·dD, through the soft cap if the model has one.
#[cube(launch)]
fn row_compared_gradients<X: Float, Y: Float>(
    x: &mut [X],
    y: &[Y],
    targets: &[u32],
    gradients: &[f32],
    other: &[f32],
    first: usize,
    place: usize,
    logits: LogitRows,
    logits_y: LogitRows,
    beta: f32,
    #[comptime] kind: DivergenceKind,
    #[comptime] units: usize,
    #[define(X, Y)] _dtypes: [ElemType; 2],
) {
    let row = row_of_cube(logits.rows);
    let (start, y_start, target) = (row * logits.stride, row * logits_y.stride, targets[first + row] as usize);
    let gradients = gradient_inputs_at(gradients, place + row);
    let at = (place + row) * REFERENCE_INPUTS;
    let (q_max, q_rest, of_divergence, known) = (other[at], other[at + 1], other[at + 2], other[at + 3]);
    let mut i = UNIT_POS as usize;
    while i < logits.v {
        let logit_p = logit::<X>(x[start + i], logits);
        let log_p = (logit_p - gradients.max) - gradients.rest;
        let log_q = (logit::<Y>(y[y_start + i], logits_y) - q_max) - q_rest;
        let mut d = of_divergence * slope(log_p, log_q, known, beta, kind)
            - exp(log_p) * (gradients.of_entropy * log_p + gradients.constant);
        if i == target {
            d += gradients.of_log_prob;
        }
        x[start + i] = X::cast_from(through_cap(d, logit_p, logits));
        i += units;
    }
}

/// The mean of m − x over the logits of a row, with m the largest logit.
#[cube(launch)]
fn row_depth<X: Float>(
    x: &[X],
    stats: &mut [f32],
    place: usize,
    to: usize,
    logits: LogitRows,
    #[comptime] units: usize,
    #[define(X)] _dtype: ElemType,
) {
    let row = row_of_cube(logits.rows);
    let mut scratch = Shared::<[f32]>::new_slice(units);
    let max = stats[(place + row) * ROW_STATS];
    let start = row * logits.stride;
    let mut sum = 0f32;
    let mut i = UNIT_POS as usize;
    while i < logits.v {
        sum += max - logit::<X>(x[start + i], logits);
        i += units;
    }
    let sum = sum_of_units(sum, &mut scratch, units);
    if UNIT_POS == 0 {
        stats[to + row] = sum / f32::cast_from(logits.v);
    }
}

impl Chunk {
    /// Writes [`PAIR_STATS`] values per pair of rows to `stats`, from index `to` on. `stats` has the [statistics](Self::stats) of
    /// the first row at position `p`, and the statistics of the first row of `other` at position `q`.
    pub(crate) fn divergence(
        &self,
        other: &Self,
        (kind, beta): (DivergenceKind, f32),
        stats: &CubeTensor,
        [p, q, to]: [usize; 3],
    ) {
        let (x, y) = (&self.rows, &other.rows);
        row_divergence::launch(
            &x.tensor.client,
            grid(x.rows),
            cube_of(units_of(x.width)),
            x.buffer(),
            y.buffer(),
            buffer(stats),
            p,
            q,
            to,
            self.shape(),
            other.shape(),
            beta,
            kind,
            units_of(x.width),
            [elem(&x.tensor), elem(&y.tensor)],
        );
    }

    /// Does what [`gradients`](Self::gradients) does, with a gradient of the divergence, given by [`REFERENCE_INPUTS`] values per token.
    pub(crate) fn compared_gradients(
        self,
        other: &Self,
        (kind, beta): (DivergenceKind, f32),
        targets: &Targets,
        [gradients, reference]: [&CubeTensor; 2],
        place: usize,
    ) -> Tensor<2> {
        let chunk = self.writable();
        let (x, y) = (&chunk.rows, &other.rows);
        row_compared_gradients::launch(
            &x.tensor.client,
            grid(x.rows),
            cube_of(units_of(x.width)),
            x.buffer(),
            y.buffer(),
            buffer(&targets.0),
            buffer(gradients),
            buffer(reference),
            chunk.first,
            place,
            chunk.shape(),
            other.shape(),
            beta,
            kind,
            units_of(x.width),
            [elem(&x.tensor), elem(&y.tensor)],
        );
        Tensor::from_primitive::<Cube>(chunk.rows.tensor)
    }

    /// Writes to `stats`, from index `to` on, the difference between each row's largest and mean logit. `stats` has the
    /// [statistics](Self::stats) of the first row at `place`.
    pub(crate) fn depth(&self, stats: &CubeTensor, place: usize, to: usize) {
        let x = &self.rows;
        row_depth::launch(
            &x.tensor.client,
            grid(x.rows),
            cube_of(units_of(x.width)),
            x.buffer(),
            buffer(stats),
            place,
            to,
            self.shape(),
            units_of(x.width),
            elem(&x.tensor),
        );
    }
}
