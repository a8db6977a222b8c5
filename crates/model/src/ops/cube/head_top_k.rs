//! The likeliest tokens of rows of logits, and what becomes of a row at the tokens of a teacher.
//!
//! Thresholds and ties are those of [`choose`](super::choose), in the order of the products: a soft cap does not change it.

use burn::tensor::DType;
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::choose::{Row, Weight, above, find, key, largest, logit as product_of, search};
use super::chunk::{Chunk, Targets, given_at, gradient, logit, through_cap};
use super::launch::{buffer, cube_dim, cube_of, elem, empty, grid, grid_of_units, units_of};
use super::rows::{Rows, upload};
use super::split::Split;
use super::sum::sum_before;

/// Writes k ids and their logits for each row, by no order.
#[cube(launch)]
fn row_largest<X: Float>(
    x: &[X],
    found: &mut [f32],
    to: usize,
    k: usize,
    rows: usize,
    v: usize,
    stride: usize,
    cap: f32,
    temperature: f32,
    zero: u32,
    #[comptime] capped: bool,
    #[comptime] units: usize,
    #[define(X)] _dtype: ElemType,
) {
    let number = CUBE_POS;
    if number >= rows {
        terminate!();
    }
    let mut scratch = Shared::<[f32]>::new_slice(units);
    let mut row = Row { start: number * stride, v, max: 0f32, scale: 1f32, floor: 0u32, last: v, zero };
    row.max = largest::<X>(x, row, &mut scratch, units);
    row.floor = search::<X>(x, row, f32::cast_from(k), &mut scratch, Weight::One, units);
    let ties = f32::cast_from(k) - above::<X>(x, row, &mut scratch, Weight::One, units);
    row.last = find::<X>(x, row, Split { high: ties - 1f32, low: 0f32 }, &mut scratch, Weight::Tie, units);
    let mut own = 0f32;
    let mut i = UNIT_POS as usize;
    while i < v {
        let key = key(f32::cast_from(x[row.start + i]));
        if key > row.floor || (key == row.floor && i <= row.last) {
            own += 1f32;
        }
        i += units;
    }
    // What units before this one write comes before what it writes.
    let mut next = sum_before(own, &mut scratch) as usize;
    i = UNIT_POS as usize;
    while i < v {
        let key = key(f32::cast_from(x[row.start + i]));
        // NaN is above all, and may be more than k.
        if (key > row.floor || (key == row.floor && i <= row.last)) && next < k {
            let at = to + (number * k + next) * 2;
            found[at] = f32::cast_from(i);
            found[at + 1] = logit::<X>(x[row.start + i], cap, temperature, capped);
            next += 1;
        }
        i += units;
    }
}

/// Writes for each row its logits at k ids, and the k-th largest.
#[cube(launch)]
fn row_at_ids<X: Float>(
    x: &[X],
    ids: &[u32],
    found: &mut [f32],
    first: usize,
    to: usize,
    k: usize,
    rows: usize,
    v: usize,
    stride: usize,
    cap: f32,
    temperature: f32,
    zero: u32,
    #[comptime] capped: bool,
    #[comptime] units: usize,
    #[define(X)] _dtype: ElemType,
) {
    let number = CUBE_POS;
    if number >= rows {
        terminate!();
    }
    let mut scratch = Shared::<[f32]>::new_slice(units);
    let mut row = Row { start: number * stride, v, max: 0f32, scale: 1f32, floor: 0u32, last: v, zero };
    row.max = largest::<X>(x, row, &mut scratch, units);
    let least = search::<X>(x, row, f32::cast_from(k), &mut scratch, Weight::One, units);
    let at = to + number * (k + 1);
    let mut i = UNIT_POS as usize;
    while i < k {
        let id = ids[(first + number) * k + i] as usize;
        found[at + i] = logit::<X>(x[row.start + id], cap, temperature, capped);
        i += units;
    }
    if UNIT_POS == 0 {
        found[at + k] = logit::<X>(X::cast_from(product_of(least)), cap, temperature, capped);
    }
}

/// The gradients by the products that are pulled, while the products are still there.
#[cube(launch)]
fn find_pulled<X: Float>(
    x: &[X],
    targets: &[u32],
    given: &[f32],
    places: &[u32],
    amounts: &[f32],
    pulled: &mut [f32],
    first: usize,
    place: usize,
    count: usize,
    stride: usize,
    cap: f32,
    temperature: f32,
    #[comptime] capped: bool,
    #[define(X)] _dtype: ElemType,
) {
    if ABSOLUTE_POS >= count {
        terminate!();
    }
    let (row, id) = (places[2 * ABSOLUTE_POS] as usize, places[2 * ABSOLUTE_POS + 1]);
    let logit = logit::<X>(x[row * stride + id as usize], cap, temperature, capped);
    let d = gradient(logit, id == targets[first + row], given_at(given, place + row)) - amounts[ABSOLUTE_POS];
    pulled[ABSOLUTE_POS] = through_cap(d, logit, cap, temperature, capped);
}

#[cube(launch)]
fn put_pulled<X: Float>(x: &mut [X], places: &[u32], pulled: &[f32], count: usize, stride: usize, #[define(X)] _dtype: ElemType) {
    if ABSOLUTE_POS >= count {
        terminate!();
    }
    let (row, id) = (places[2 * ABSOLUTE_POS] as usize, places[2 * ABSOLUTE_POS + 1] as usize);
    x[row * stride + id] = X::cast_from(pulled[ABSOLUTE_POS]);
}

/// What the gradient of a logit loses: the row in its chunk, the id, and how much. No logit of a chunk is there twice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pull {
    pub row: u32,
    pub id: u32,
    pub amount: f32,
}

/// Gradients that take the place of those without pulls.
pub struct Pulls {
    places: CubeTensor,
    pulled: CubeTensor,
    count: usize,
}

impl Pulls {
    /// Finds the gradients of the products that are pulled. Arguments are those of [`Chunk::gradients`].
    pub fn find(chunk: &Chunk, targets: &Targets, given: &CubeTensor, place: usize, pulls: &[Pull]) -> Option<Self> {
        if pulls.is_empty() {
            return None;
        }
        let (x, (cap, temperature), count) = (&chunk.rows, chunk.cap(), pulls.len());
        let places: Vec<u32> = pulls.iter().flat_map(|pull| [pull.row, pull.id]).collect();
        let amounts: Vec<f32> = pulls.iter().map(|pull| pull.amount).collect();
        let (places, pulled) = (upload(&x.tensor, &places, DType::U32), empty(&x.tensor, [count], DType::F32));
        find_pulled::launch(
            &x.tensor.client,
            grid_of_units(count),
            cube_dim(),
            x.buffer(),
            buffer(&targets.0),
            buffer(given),
            buffer(&places),
            buffer(&upload(&x.tensor, &amounts, DType::F32)),
            buffer(&pulled),
            chunk.first,
            place,
            count,
            x.stride,
            cap,
            temperature,
            chunk.softcap.is_some(),
            elem(&x.tensor),
        );
        Some(Self { places, pulled, count })
    }

    /// Writes them to where the products were.
    pub fn put(self, x: &Rows) {
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
    /// Writes the k largest logits of each row to `found`, from the number `to` on: for each its id and the logit. Of equal ones it takes
    /// those of the lowest ids.
    pub fn largest(&self, k: usize, found: &CubeTensor, to: usize) {
        let (x, (cap, temperature)) = (&self.rows, self.cap());
        row_largest::launch(
            &x.tensor.client,
            grid(x.rows),
            cube_of(units_of(x.width)),
            x.buffer(),
            buffer(found),
            to,
            k,
            x.rows,
            x.width,
            x.stride,
            cap,
            temperature,
            // As a number of which compilers know nothing.
            0,
            self.softcap.is_some(),
            units_of(x.width),
            elem(&x.tensor),
        );
    }

    /// Writes k + 1 numbers of each row to `found`, from the number `to` on: the logits of k ids, those of the rows of `ids` [tokens, k],
    /// and the k-th largest logit.
    pub fn at_ids(&self, ids: &CubeTensor, k: usize, found: &CubeTensor, to: usize) {
        let (x, (cap, temperature)) = (&self.rows, self.cap());
        row_at_ids::launch(
            &x.tensor.client,
            grid(x.rows),
            cube_of(units_of(x.width)),
            x.buffer(),
            buffer(ids),
            buffer(found),
            self.first,
            to,
            k,
            x.rows,
            x.width,
            x.stride,
            cap,
            temperature,
            0,
            self.softcap.is_some(),
            units_of(x.width),
            elem(&x.tensor),
        );
    }
}
