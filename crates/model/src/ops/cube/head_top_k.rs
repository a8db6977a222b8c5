//! The top-k tokens of rows of logits, and the logits and gradients at a teacher's tokens.
//!
//! Thresholds and ties are found by [`choose`](super::choose), in the order of the products, which a soft cap does not change.

use burn::tensor::DType;
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::choose::{LogitRow, Weight, above, find, key, largest, logit as product_of, search};
use super::chunk::{Chunk, LogitRows, Targets, gradient, gradient_inputs_at, logit, through_cap};
use super::launch::{buffer, cube_dim, cube_of, elem, empty, grid, grid_of_units, row_of_cube, units_of};
use super::rows::{Rows, upload};
use super::split::Split;
use super::sum::sum_before;

/// The row `number` of a chunk, with all of its tokens.
#[cube]
fn full_row<X: Float>(
    x: &[X],
    number: usize,
    logits: LogitRows,
    zero: u32,
    scratch: &mut [f32],
    #[comptime] units: usize,
) -> LogitRow {
    let mut row =
        LogitRow { start: number * logits.stride, v: logits.v, max: 0f32, scale: 1f32, floor: 0u32, last: logits.v, zero };
    row.max = largest::<X>(x, row, scratch, units);
    row
}

/// Writes k ids and their logits for each row, unordered.
#[cube(launch)]
fn row_largest<X: Float>(
    x: &[X],
    stats: &mut [f32],
    to: usize,
    k: usize,
    logits: LogitRows,
    zero: u32,
    #[comptime] units: usize,
    #[define(X)] _dtype: ElemType,
) {
    let number = row_of_cube(logits.rows);
    let mut scratch = Shared::<[f32]>::new_slice(units);
    let mut row = full_row::<X>(x, number, logits, zero, &mut scratch, units);
    row.floor = search::<X>(x, row, f32::cast_from(k), &mut scratch, Weight::One, units);
    let ties = f32::cast_from(k) - above::<X>(x, row, &mut scratch, Weight::One, units);
    row.last = find::<X>(x, row, Split { high: ties - 1f32, low: 0f32 }, &mut scratch, Weight::Tie, units);
    let mut entries = 0f32;
    let mut i = UNIT_POS as usize;
    while i < logits.v {
        let key = key(f32::cast_from(x[row.start + i]));
        if key > row.floor || (key == row.floor && i <= row.last) {
            entries += 1f32;
        }
        i += units;
    }
    // This unit writes after all entries of earlier units.
    let mut next = sum_before(entries, &mut scratch) as usize;
    i = UNIT_POS as usize;
    while i < logits.v {
        let key = key(f32::cast_from(x[row.start + i]));
        // NaN ranks above all, so there may be more than k.
        if (key > row.floor || (key == row.floor && i <= row.last)) && next < k {
            let at = to + (number * k + next) * 2;
            stats[at] = f32::cast_from(i);
            stats[at + 1] = logit::<X>(x[row.start + i], logits);
            next += 1;
        }
        i += units;
    }
}

/// Writes for each row its logits at k ids, and the k-th largest logit.
#[cube(launch)]
fn row_at_ids<X: Float>(
    x: &[X],
    ids: &[u32],
    stats: &mut [f32],
    first: usize,
    to: usize,
    k: usize,
    logits: LogitRows,
    zero: u32,
    #[comptime] units: usize,
    #[define(X)] _dtype: ElemType,
) {
    let number = row_of_cube(logits.rows);
    let mut scratch = Shared::<[f32]>::new_slice(units);
    let row = full_row::<X>(x, number, logits, zero, &mut scratch, units);
    let min = search::<X>(x, row, f32::cast_from(k), &mut scratch, Weight::One, units);
    let at = to + number * (k + 1);
    let mut i = UNIT_POS as usize;
    while i < k {
        let id = ids[(first + number) * k + i] as usize;
        stats[at + i] = logit::<X>(x[row.start + id], logits);
        i += units;
    }
    if UNIT_POS == 0 {
        stats[at + k] = logit::<X>(X::cast_from(product_of(min)), logits);
    }
}

/// Computes the gradients of the pulled products, before the products are overwritten.
#[cube(launch)]
fn find_pulled<X: Float>(
    x: &[X],
    targets: &[u32],
    gradients: &[f32],
    places: &[u32],
    amounts: &[f32],
    pulled: &mut [f32],
    first: usize,
    place: usize,
    count: usize,
    logits: LogitRows,
    #[define(X)] _dtype: ElemType,
) {
    if ABSOLUTE_POS >= count {
        terminate!();
    }
    let (row, id) = (places[2 * ABSOLUTE_POS] as usize, places[2 * ABSOLUTE_POS + 1]);
    let logit = logit::<X>(x[row * logits.stride + id as usize], logits);
    let d = gradient(logit, id == targets[first + row], gradient_inputs_at(gradients, place + row)) - amounts[ABSOLUTE_POS];
    pulled[ABSOLUTE_POS] = through_cap(d, logit, logits);
}

#[cube(launch)]
fn put_pulled<X: Float>(x: &mut [X], places: &[u32], pulled: &[f32], count: usize, stride: usize, #[define(X)] _dtype: ElemType) {
    if ABSOLUTE_POS >= count {
        terminate!();
    }
    let (row, id) = (places[2 * ABSOLUTE_POS] as usize, places[2 * ABSOLUTE_POS + 1] as usize);
    x[row * stride + id] = X::cast_from(pulled[ABSOLUTE_POS]);
}

/// Subtractions from logit gradients: (row in chunk, token id, amount), each logit of a chunk at most once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pull {
    pub row: u32,
    pub id: u32,
    pub amount: f32,
}

/// Gradients at the pulled logits, which replace the gradients without pulls.
pub(crate) struct Pulls {
    places: CubeTensor,
    pulled: CubeTensor,
    count: usize,
}

impl Pulls {
    /// Computes the gradients of the pulled products. The arguments are the same as in [`Chunk::gradients`].
    pub(crate) fn find(chunk: &Chunk, targets: &Targets, gradients: &CubeTensor, place: usize, pulls: &[Pull]) -> Option<Self> {
        if pulls.is_empty() {
            return None;
        }
        let (x, count) = (&chunk.rows, pulls.len());
        let places: Vec<u32> = pulls.iter().flat_map(|pull| [pull.row, pull.id]).collect();
        let amounts: Vec<f32> = pulls.iter().map(|pull| pull.amount).collect();
        let (places, pulled) = (upload(&x.tensor, &places, DType::U32), empty(&x.tensor, [count], DType::F32));
        find_pulled::launch(
            &x.tensor.client,
            grid_of_units(count),
            cube_dim(),
            x.buffer(),
            buffer(&targets.0),
            buffer(gradients),
            buffer(&places),
            buffer(&upload(&x.tensor, &amounts, DType::F32)),
            buffer(&pulled),
            chunk.first,
            place,
            count,
            chunk.shape(),
            elem(&x.tensor),
        );
        Some(Self { places, pulled, count })
    }

    /// Writes the gradients in place of the products.
    pub(crate) fn put(self, x: &Rows) {
        put_pulled::launch(
            &x.tensor.client,
            grid_of_units(self.count),
            cube_dim(),
            x.buffer(),
            buffer(&self.places),
            buffer(&self.pulled),
            self.count,
            x.stride,
            elem(&x.tensor),
        );
    }
}

impl Chunk {
    /// Writes the k largest logits of each row to `stats`, from index `to` on, each as its id and the logit. Of equal logits, the
    /// lowest ids are taken.
    pub(crate) fn largest(&self, k: usize, stats: &CubeTensor, to: usize) {
        let x = &self.rows;
        row_largest::launch(
            &x.tensor.client,
            grid(x.rows),
            cube_of(units_of(x.width)),
            x.buffer(),
            buffer(stats),
            to,
            k,
            self.shape(),
            // A runtime zero, so that compilers do not know its value.
            0,
            units_of(x.width),
            elem(&x.tensor),
        );
    }

    /// Writes k + 1 values per row to `stats`, from index `to` on: the logits at the k ids of the row of `ids` [tokens, k], and
    /// the k-th largest logit.
    pub(crate) fn at_ids(&self, ids: &CubeTensor, k: usize, stats: &CubeTensor, to: usize) {
        let x = &self.rows;
        row_at_ids::launch(
            &x.tensor.client,
            grid(x.rows),
            cube_of(units_of(x.width)),
            x.buffer(),
            buffer(ids),
            buffer(stats),
            self.first,
            to,
            k,
            self.shape(),
            0,
            units_of(x.width),
            elem(&x.tensor),
        );
    }
}
