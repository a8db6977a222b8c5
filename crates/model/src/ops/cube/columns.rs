//! Sums over rows, column by column: first over parts of [`PART_ROWS`] rows, then over the parts in order.

use burn::backend::TensorMetadata;
use burn::tensor::DType;
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::launch::{buffer, cube_dim, dense, elem, empty, grid_of_units};

/// The number of rows summed into one part.
pub(crate) const PART_ROWS: usize = 64;

/// Sums of `part_rows` rows of x [rows, d]: one unit per part and column.
#[cube(launch)]
fn parts_of_rows<X: Float, Y: Float>(
    x: &[X],
    parts: &mut [Y],
    rows: usize,
    d: usize,
    count: usize,
    part_rows: usize,
    #[define(X, Y)] _dtypes: [ElemType; 2],
) {
    if ABSOLUTE_POS >= count * d {
        terminate!();
    }
    let (part, i) = (ABSOLUTE_POS / d, ABSOLUTE_POS % d);
    let first = part * part_rows;
    let mut end = first + part_rows;
    if end > rows {
        end = rows;
    }
    let mut sum = 0f32;
    for row in first..end {
        sum += f32::cast_from(x[row * d + i]);
    }
    parts[ABSOLUTE_POS] = Y::cast_from(sum);
}

/// Sums every `part_rows` rows of x [rows, d], in order, in f32 -> [rows / part_rows, d] in `dtype`.
fn parts(x: &CubeTensor, part_rows: usize, dtype: DType) -> CubeTensor {
    let [rows, d] = [x.shape()[0], x.shape()[1]];
    let count = rows.div_ceil(part_rows).max(1);
    let y = empty(x, [count, d], dtype);
    parts_of_rows::launch(
        &x.client,
        grid_of_units(count * d),
        cube_dim(),
        buffer(x),
        buffer(&y),
        rows,
        d,
        count,
        part_rows,
        [elem(x), elem(&y)],
    );
    y
}

/// Sums the rows of x [rows, d] in `dtype` -> [1, d].
pub(crate) fn sum_of_rows(x: CubeTensor, dtype: DType) -> CubeTensor {
    let mut x = dense(x);
    while x.shape()[0] > PART_ROWS {
        x = parts(&x, PART_ROWS, DType::F32);
    }
    let rows = x.shape()[0].max(1);
    parts(&x, rows, dtype)
}
