//! The head's passes over a chunk of logits, one cube per row: the statistics of a row and its target, and the gradient of the
//! logits in place. The passes for comparisons are in [`head_compared`](super::head_compared) and
//! [`head_top_k`](super::head_top_k).
//!
//! A row is read once: each unit keeps its partial sums and the largest logit it has seen; the partial sums are combined at the
//! end. Logits may have the dtype of the matmul; sums are f32.

use burn::backend::Cube;
use burn::tensor::Tensor;
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::chunk::{Chunk, LogitRows, ROW_STATS, Targets, gradient, gradient_inputs_at, logit, through_cap};
use super::head_top_k::{Pull, Pulls};
use super::launch::{buffer, cube_of, elem, grid, row_of_cube, units_of};
use super::sum::{max_of_units, sum_of_units};

/// Placeholder for "no logit".
const LOWEST: f32 = -1.0e30;

/// Sums over logits x with z = x − max: Σ e^z, Σ e^z·z and Σ e^2z.
#[derive(CubeType)]
struct RunningSums {
    max: f32,
    sum: f32,
    weighted: f32,
    squares: f32,
}

/// Adds four logits at once; all but the first may be [`LOWEST`].
#[cube]
fn add_logits(running: &mut RunningSums, a: f32, b: f32, c: f32, d: f32) {
    let top = a.max(b).max(c.max(d));
    if top > running.max {
        let z = running.max - top;
        let scale = z.exp();
        running.weighted = scale * (running.weighted + z * running.sum);
        running.squares *= scale * scale;
        running.sum *= scale;
        running.max = top;
    }
    let (za, zb, zc, zd) = (a - running.max, b - running.max, c - running.max, d - running.max);
    let (ea, eb, ec, ed) = (za.exp(), zb.exp(), zc.exp(), zd.exp());
    running.sum += (ea + eb) + (ec + ed);
    running.weighted += (ea * za + eb * zb) + (ec * zc + ed * zd);
    running.squares += (ea * ea + eb * eb) + (ec * ec + ed * ed);
}

#[cube(launch)]
fn row_stats<F: Float>(
    x: &[F],
    targets: &[u32],
    stats: &mut [f32],
    first: usize,
    place: usize,
    logits: LogitRows,
    #[comptime] units: usize,
    #[define(F)] _dtype: ElemType,
) {
    let row = row_of_cube(logits.rows);
    let mut scratch = Shared::<[f32]>::new_slice(units);
    let (start, end) = (row * logits.stride, row * logits.stride + logits.v);
    let mut part = RunningSums { max: LOWEST, sum: 0f32, weighted: 0f32, squares: 0f32 };
    let mut i = start + UNIT_POS as usize;
    while i + 3 * units < end {
        let a = logit::<F>(x[i], logits);
        let b = logit::<F>(x[i + units], logits);
        let c = logit::<F>(x[i + 2 * units], logits);
        let d = logit::<F>(x[i + 3 * units], logits);
        add_logits(&mut part, a, b, c, d);
        i += 4 * units;
    }
    while i < end {
        let a = logit::<F>(x[i], logits);
        add_logits(&mut part, a, LOWEST, LOWEST, LOWEST);
        i += units;
    }
    let max = max_of_units(part.max, &mut scratch, units);
    let z = part.max - max;
    let scale = z.exp();
    let sum = sum_of_units(scale * part.sum, &mut scratch, units);
    let weighted = sum_of_units(scale * (part.weighted + z * part.sum), &mut scratch, units);
    let squares = sum_of_units(scale * scale * part.squares, &mut scratch, units);
    if UNIT_POS == 0 {
        let target = logit::<F>(x[start + targets[first + row] as usize], logits);
        let rest = sum.ln();
        let at = (place + row) * ROW_STATS;
        stats[at] = max;
        stats[at + 1] = rest;
        stats[at + 2] = (target - max) - rest;
        stats[at + 3] = rest - weighted / sum;
        stats[at + 4] = squares / (sum * sum);
        stats[at + 5] = if target >= max { 1f32 } else { 0f32 };
    }
}

#[cube(launch)]
fn row_gradients<F: Float>(
    x: &mut [F],
    targets: &[u32],
    gradients: &[f32],
    first: usize,
    place: usize,
    logits: LogitRows,
    #[comptime] units: usize,
    #[define(F)] _dtype: ElemType,
) {
    let row = row_of_cube(logits.rows);
    let (start, target) = (row * logits.stride, targets[first + row] as usize);
    let gradients = gradient_inputs_at(gradients, place + row);
    let mut i = UNIT_POS as usize;
    while i < logits.v {
        let logit = logit::<F>(x[start + i], logits);
        let d = gradient(logit, i == target, gradients);
        x[start + i] = F::cast_from(through_cap(d, logit, logits));
        i += units;
    }
}

impl Chunk {
    /// Writes [`ROW_STATS`] values per row to `stats`, from the position of token `place` on.
    pub(crate) fn stats(&self, targets: &Targets, stats: &CubeTensor, place: usize) {
        let x = &self.rows;
        row_stats::launch(
            &x.tensor.client,
            grid(x.rows),
            cube_of(units_of(x.width)),
            x.buffer(),
            buffer(&targets.0),
            buffer(stats),
            self.first,
            place,
            self.shape(),
            units_of(x.width),
            elem(&x.tensor),
        );
    }

    /// Turns the products into their gradients [rows, v], in their dtype and in place. `gradients` has the first row's values at the
    /// position of token `place`; `pulls` are for these rows.
    pub(crate) fn gradients(self, targets: &Targets, gradients: &CubeTensor, place: usize, pulls: &[Pull]) -> Tensor<2> {
        let chunk = self.writable();
        let pulls = Pulls::find(&chunk, targets, gradients, place, pulls);
        let x = &chunk.rows;
        row_gradients::launch(
            &x.tensor.client,
            grid(x.rows),
            cube_of(units_of(x.width)),
            x.buffer(),
            buffer(&targets.0),
            buffer(gradients),
            chunk.first,
            place,
            chunk.shape(),
            units_of(x.width),
            elem(&x.tensor),
        );
        if let Some(pulls) = pulls {
            pulls.put(x);
        }
        Tensor::from_primitive::<Cube>(chunk.rows.tensor)
    }
}
