//! Gathers rows into attention's padded layout and back, one unit per element that is read or written; sums the gradients of
//! shared keys.

use burn::backend::{Cube, TensorMetadata};
use burn::tensor::{DType, Shape};
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::launch::{buffer, cube_dim, dense, elem, empty, grid_of_units, is_left_to_burn};
use super::rows::Rows;
use crate::ops::attention_blocks::{self, Blocks};

/// Splits the index of an element of [segments, heads, queries, d] into its position in [segments, queries], its head and its
/// column. The layout [segments, kv heads, group · queries, d] is the same.
#[cube]
fn place(number: usize, heads: usize, queries: usize, d: usize) -> (usize, usize, usize) {
    let query = number / d % queries;
    let head = number / (d * queries);
    (head / heads * queries + query, head % heads, number % d)
}

/// padded[segment, head, query] = x[rows[segment, query], head].
#[cube(launch)]
fn pad_all<X: Float, I: Int>(
    x: &[X],
    rows: &[I],
    padded: &mut [X],
    count: usize,
    heads: usize,
    queries: usize,
    d: usize,
    stride: usize,
    #[define(X, I)] _dtypes: [ElemType; 2],
) {
    if ABSOLUTE_POS >= count {
        terminate!();
    }
    let (query, head, column) = place(ABSOLUTE_POS, heads, queries, d);
    padded[ABSOLUTE_POS] = x[usize::cast_from(rows[query]) * stride + head * d + column];
}

/// y[rows[segment, query], head] = padded[segment, head, query]. Queries of a head are `stride` apart. Padding is not written.
#[cube(launch)]
fn unpad_all<X: Float, I: Int>(
    padded: &[X],
    rows: &[I],
    positions: &[I],
    y: &mut [X],
    count: usize,
    heads: usize,
    queries: usize,
    d: usize,
    stride: usize,
    #[define(X, I)] _dtypes: [ElemType; 2],
) {
    if ABSOLUTE_POS >= count {
        terminate!();
    }
    let (query, head, column) = place(ABSOLUTE_POS, heads, queries, d);
    if i32::cast_from(positions[query]) >= 0 {
        y[(usize::cast_from(rows[query]) * heads + head) * d + column] = padded[ABSOLUTE_POS / d * stride + column];
    }
}

/// y[row, head] = the gradient at the row's own position in x [segments, heads, keys, d], plus the sum over its positions in the segments
/// that share it. The sum is in the order of the segments.
#[cube(launch)]
fn sum_all<X: Float, Y: Float, I: Int>(
    x: &[X],
    own: &[I],
    of_row: &[I],
    places: &[I],
    y: &mut [Y],
    count: usize,
    heads: usize,
    keys: usize,
    d: usize,
    stride: usize,
    max: usize,
    nowhere: usize,
    #[comptime] shared: bool,
    #[define(X, Y, I)] _dtypes: [ElemType; 3],
) {
    if ABSOLUTE_POS >= count {
        terminate!();
    }
    let column = ABSOLUTE_POS % d;
    let head = ABSOLUTE_POS / d % heads;
    let row = ABSOLUTE_POS / (d * heads);
    let place = usize::cast_from(own[row]);
    let mut total = f32::cast_from(x[((place / keys * heads + head) * keys + place % keys) * stride + column]);
    if shared {
        let end = usize::cast_from(of_row[row]) * max;
        let mut sum = 0f32;
        if end > 0 {
            for i in 0..max {
                let place = usize::cast_from(places[end - max + i]);
                if place < nowhere {
                    sum += f32::cast_from(x[((place / keys * heads + head) * keys + place % keys) * stride + column]);
                }
            }
        }
        total += sum;
    }
    y[ABSOLUTE_POS] = Y::cast_from(total);
}

/// True if burn's own operations are used: for this tensor, or because `count` elements are too many.
fn is_left(x: &CubeTensor, count: usize) -> bool {
    is_left_to_burn(x) || u32::try_from(count).is_err()
}

/// See [`attention_blocks::pad`].
pub(super) fn pad(x: CubeTensor, rows: &CubeTensor, [segments, kv_heads]: [usize; 2]) -> CubeTensor {
    let (shape, queries) = (x.shape(), rows.shape()[0] / segments);
    let (heads, d) = (shape[1], shape[2]);
    let count = segments * queries * heads * d;
    if is_left(&x, count) {
        return attention_blocks::pad::<Cube>(x, rows, [segments, kv_heads]);
    }
    let (x, rows) = (Rows::over(x, 1), dense(rows.clone()));
    let padded = empty(&x.tensor, [segments, kv_heads, heads / kv_heads * queries, d], x.tensor.dtype);
    pad_all::launch(
        &rows.client,
        grid_of_units(count),
        cube_dim(),
        x.buffer(),
        buffer(&rows),
        buffer(&padded),
        count,
        heads,
        queries,
        d,
        x.stride,
        [elem(&padded), elem(&rows)],
    );
    padded
}

/// See [`Blocks::rows`]. One launch per range of queries. Each row is a query of one range, so every row is written.
pub(crate) fn unpad(parts: Vec<CubeTensor>, blocks: &Blocks<Cube>) -> CubeTensor {
    let (shape, queries) = (parts[0].shape(), blocks.ranges[0].range.len());
    let (heads, d) = (shape[1] * (shape[2] / queries), shape[3]);
    let n = blocks.key_places.shape()[0];
    if parts.iter().any(|part| is_left(part, n * heads * d)) {
        return blocks.rows(parts);
    }
    let y = empty(&parts[0], [n, heads, d], parts[0].dtype);
    for (part, queries) in parts.into_iter().zip(&blocks.ranges) {
        let count = part.shape().num_elements();
        let (part, [rows, positions]) = (Rows::over(part, 3), [&queries.rows, &queries.positions].map(|x| dense(x.clone())));
        unpad_all::launch(
            &y.client,
            grid_of_units(count),
            cube_dim(),
            part.buffer(),
            buffer(&rows),
            buffer(&positions),
            buffer(&y),
            count,
            heads,
            queries.range.len(),
            d,
            part.stride,
            [elem(&y), elem(&rows)],
        );
    }
    y
}

/// See [`Blocks::sum_of_keys`].
pub(crate) fn sum_of_keys(x: CubeTensor, blocks: &Blocks<Cube>, dtype: DType) -> CubeTensor {
    let (shape, n) = (x.shape(), blocks.key_places.shape()[0]);
    let (heads, d) = (shape[1], shape[3]);
    let count = n * heads * d;
    if dtype == DType::F64 || is_left(&x, count) {
        return blocks.sum_of_keys(x, dtype);
    }
    let (x, own) = (Rows::over(x, 3), dense(blocks.key_places.clone()));
    // A kernel needs a buffer for each argument. If no row is shared, it does not read the lists.
    let (lists, max) = match &blocks.stems {
        Some(stems) => ([&stems.of_row, &stems.places].map(|list| dense(list.clone())), stems.max),
        None => ([(); 2].map(|()| own.clone()), 0),
    };
    let y = empty(&x.tensor, Shape::from([n, heads, d]), dtype);
    sum_all::launch(
        &y.client,
        grid_of_units(count),
        cube_dim(),
        x.buffer(),
        buffer(&own),
        buffer(&lists[0]),
        buffer(&lists[1]),
        buffer(&y),
        count,
        heads,
        blocks.keys,
        d,
        x.stride,
        max,
        blocks.segments * blocks.keys,
        blocks.stems.is_some(),
        [elem(&x.tensor), elem(&y), elem(&own)],
    );
    y
}
