//! Norms over the last dimension, one cube per row. RMSNorm is LayerNorm without mean and bias.

use burn::backend::ops::FloatTensorOps;
use burn::backend::{Cube, TensorMetadata};
use burn::tensor::{DType, Slice};
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::columns::{PART_ROWS, sum_of_rows};
use super::launch::{buffer, cube_dim, cube_of, dense, elem, empty, empty_like, grid, grid_of_units, row_of_cube, units_of};
use super::rows::Rows;
use super::sum::sum_of_units;
use crate::ops::norm::NormKernels;

/// Returns to every unit the mean of a row (0 unless `centred`) and 1 / sqrt(mean((x − mean)²) + eps).
#[cube]
fn moments<X: Float>(
    x: &[X],
    start: usize,
    d: usize,
    eps: f32,
    scratch: &mut [f32],
    #[comptime] centred: bool,
    #[comptime] units: usize,
) -> (f32, f32) {
    let mut mean = 0f32;
    if centred {
        let mut sum = 0f32;
        for i in range_stepped(UNIT_POS as usize, d, units) {
            sum += f32::cast_from(x[start + i]);
        }
        mean = sum_of_units(sum, scratch, units) / f32::cast_from(d);
    }
    let mut squares = 0f32;
    for i in range_stepped(UNIT_POS as usize, d, units) {
        let value = f32::cast_from(x[start + i]) - mean;
        squares += value * value;
    }
    let variance = sum_of_units(squares, scratch, units) / f32::cast_from(d);
    (mean, 1f32 / f32::sqrt(variance + eps))
}

/// y = (x − mean)·r·(offset + w) + b for the row of x at `from` and of y at `to`; `b` is only read if `centred`.
#[cube]
fn normalise<X: Float, W: Float, Y: Float>(
    x: &[X],
    w: &[W],
    b: &[W],
    y: &mut [Y],
    from: usize,
    to: usize,
    d: usize,
    eps: f32,
    offset: f32,
    scratch: &mut [f32],
    #[comptime] centred: bool,
    #[comptime] units: usize,
) {
    let (mean, r) = moments::<X>(x, from, d, eps, scratch, centred, units);
    for i in range_stepped(UNIT_POS as usize, d, units) {
        let mut value = (f32::cast_from(x[from + i]) - mean) * r * (offset + f32::cast_from(w[i]));
        if centred {
            value += f32::cast_from(b[i]);
        }
        y[to + i] = Y::cast_from(value);
    }
}

/// [`normalise`] for each row.
#[cube(launch)]
fn forward<X: Float, W: Float, Y: Float>(
    x: &[X],
    w: &[W],
    b: &[W],
    y: &mut [Y],
    rows: usize,
    d: usize,
    eps: f32,
    offset: f32,
    #[comptime] centred: bool,
    #[comptime] units: usize,
    #[define(X, W, Y)] _dtypes: [ElemType; 3],
) {
    let row = row_of_cube(rows);
    let mut scratch = Shared::<[f32]>::new_slice(units);
    let start = row * d;
    normalise::<X, W, Y>(x, w, b, y, start, start, d, eps, offset, &mut scratch, centred, units);
}

/// [`forward`] of total = x + other; also writes `total`.
#[cube(launch)]
fn forward_of_sum<X: Float, O: Float, W: Float, Y: Float>(
    x: &[X],
    other: &[O],
    w: &[W],
    b: &[W],
    total: &mut [X],
    y: &mut [Y],
    rows: usize,
    d: usize,
    other_stride: usize,
    eps: f32,
    offset: f32,
    #[comptime] centred: bool,
    #[comptime] units: usize,
    #[define(X, O, W, Y)] _dtypes: [ElemType; 4],
) {
    let row = row_of_cube(rows);
    let mut scratch = Shared::<[f32]>::new_slice(units);
    let start = row * d;
    // Each unit reads back only elements that it has written itself.
    for i in range_stepped(UNIT_POS as usize, d, units) {
        total[start + i] = X::cast_from(f32::cast_from(x[start + i]) + f32::cast_from(other[row * other_stride + i]));
    }
    let row = &total[start..start + d];
    normalise::<X, W, Y>(row, w, b, y, 0usize, start, d, eps, offset, &mut scratch, centred, units);
}

/// dx = r·(g − mean(g) − xr·mean(g·xr)) for each row, with g = dy·w and xr = (x − mean)·r; mean(g) is omitted unless `centred`.
/// Writes (mean, r) of each row to `stored`.
#[cube(launch)]
fn backward<X: Float, W: Float>(
    x: &[X],
    w: &[W],
    dy: &[X],
    dx: &mut [X],
    stored: &mut [f32],
    rows: usize,
    d: usize,
    eps: f32,
    #[comptime] centred: bool,
    #[comptime] units: usize,
    #[define(X, W)] _dtypes: [ElemType; 2],
) {
    let row = row_of_cube(rows);
    let mut scratch = Shared::<[f32]>::new_slice(units);
    let start = row * d;
    let (mean, r) = moments::<X>(x, start, d, eps, &mut scratch, centred, units);
    if UNIT_POS == 0 {
        stored[2 * row] = mean;
        stored[2 * row + 1] = r;
    }
    let mut along = 0f32;
    let mut sum = 0f32;
    for i in range_stepped(UNIT_POS as usize, d, units) {
        let g = f32::cast_from(dy[start + i]) * f32::cast_from(w[i]);
        along += g * (f32::cast_from(x[start + i]) - mean) * r;
        sum += g;
    }
    let along = sum_of_units(along, &mut scratch, units) / f32::cast_from(d);
    let mut mean_g = 0f32;
    if centred {
        mean_g = sum_of_units(sum, &mut scratch, units) / f32::cast_from(d);
    }
    for i in range_stepped(UNIT_POS as usize, d, units) {
        let g = f32::cast_from(dy[start + i]) * f32::cast_from(w[i]);
        let xr = (f32::cast_from(x[start + i]) - mean) * r;
        dx[start + i] = X::cast_from(r * (g - mean_g - xr * along));
    }
}

/// The sums over [`PART_ROWS`] rows of dy·xr, followed by the sums of dy if there is a bias: [parts, d or 2·d]. One unit per part
/// and column.
#[cube(launch)]
fn weight_parts<X: Float>(
    x: &[X],
    dy: &[X],
    stored: &[f32],
    parts: &mut [f32],
    rows: usize,
    d: usize,
    count: usize,
    #[comptime] part_rows: usize,
    #[comptime] with_bias: bool,
    #[define(X)] _dtype: ElemType,
) {
    if ABSOLUTE_POS >= count * d {
        terminate!();
    }
    let part = ABSOLUTE_POS / d;
    let i = ABSOLUTE_POS % d;
    let first = part * part_rows;
    let mut end = first + part_rows;
    if end > rows {
        end = rows;
    }
    let mut dw = 0f32;
    let mut db = 0f32;
    for row in first..end {
        let g = f32::cast_from(dy[row * d + i]);
        dw += g * (f32::cast_from(x[row * d + i]) - stored[2 * row]) * stored[2 * row + 1];
        db += g;
    }
    if with_bias {
        parts[part * 2 * d + i] = dw;
        parts[part * 2 * d + d + i] = db;
    } else {
        parts[part * d + i] = dw;
    }
}

/// The number of rows and the length of a row.
fn sizes(x: &CubeTensor) -> (usize, usize) {
    let shape = x.shape();
    let d = shape[shape.num_dims() - 1];
    (shape.num_elements() / d, d)
}

/// Normalises the rows of x, scales by (offset + w), and returns them in `dtype`. With a bias b, rows are centred and b is added.
pub(crate) fn norm(x: CubeTensor, w: CubeTensor, b: Option<CubeTensor>, eps: f64, offset: f64, dtype: DType) -> CubeTensor {
    let (x, w, b) = (dense(x), dense(w), b.map(dense));
    let ((rows, d), y) = (sizes(&x), empty(&x, x.shape(), dtype));
    let dtypes = [elem(&x), elem(&w), elem(&y)];
    let bias = buffer(b.as_ref().unwrap_or(&w));
    forward::launch(
        &x.client,
        grid(rows),
        cube_of(units_of(d)),
        buffer(&x),
        buffer(&w),
        bias,
        buffer(&y),
        rows,
        d,
        eps as f32,
        offset as f32,
        b.is_some(),
        units_of(d),
        dtypes,
    );
    y
}

/// Returns x + other, both [n, d], and its [`norm`].
pub(crate) fn norm_of_sum(
    [x, other]: [CubeTensor; 2],
    w: CubeTensor,
    b: Option<CubeTensor>,
    eps: f64,
    offset: f64,
    dtype: DType,
) -> [CubeTensor; 2] {
    let ([x, w], other, b) = ([x, w].map(dense), Rows::new(other), b.map(dense));
    let ((rows, d), total, y) = (sizes(&x), empty_like(&x), empty(&x, x.shape(), dtype));
    let dtypes = [elem(&x), elem(&other.tensor), elem(&w), elem(&y)];
    let bias = buffer(b.as_ref().unwrap_or(&w));
    forward_of_sum::launch(
        &x.client,
        grid(rows),
        cube_of(units_of(d)),
        buffer(&x),
        other.buffer(),
        buffer(&w),
        bias,
        buffer(&total),
        buffer(&y),
        rows,
        d,
        other.stride,
        eps as f32,
        offset as f32,
        b.is_some(),
        units_of(d),
        dtypes,
    );
    [total, y]
}

/// Returns the gradient of x [.., d], and the concatenated gradients of w and, if `centred`, of b: [1, d or 2·d].
fn gradients(x: CubeTensor, w: CubeTensor, dy: CubeTensor, eps: f64, centred: bool) -> [CubeTensor; 2] {
    let [x, w, dy] = [x, w, dy].map(dense);
    let ((rows, d), dx) = (sizes(&x), empty_like(&x));
    let stored = empty(&x, [rows, 2], DType::F32);
    let dtypes = [elem(&x), elem(&w)];
    backward::launch(
        &x.client,
        grid(rows),
        cube_of(units_of(d)),
        buffer(&x),
        buffer(&w),
        buffer(&dy),
        buffer(&dx),
        buffer(&stored),
        rows,
        d,
        eps as f32,
        centred,
        units_of(d),
        dtypes,
    );
    let count = rows.div_ceil(PART_ROWS);
    let parts = empty(&x, [count, if centred { 2 * d } else { d }], DType::F32);
    weight_parts::launch(
        &x.client,
        grid_of_units(count * d),
        cube_dim(),
        buffer(&x),
        buffer(&dy),
        buffer(&stored),
        buffer(&parts),
        rows,
        d,
        count,
        PART_ROWS,
        centred,
        elem(&x),
    );
    [dx, sum_of_rows(parts, w.dtype)]
}

impl NormKernels for Cube {
    fn rms_norm_fwd(x: CubeTensor, w: CubeTensor, eps: f64) -> CubeTensor {
        let dtype = x.dtype;
        norm(x, w, None, eps, 0.0, dtype)
    }

    fn rms_norm_bwd(x: CubeTensor, w: CubeTensor, dy: CubeTensor, eps: f64) -> [CubeTensor; 2] {
        let shape = w.shape();
        let [dx, dw] = gradients(x, w, dy, eps, false);
        [dx, Self::float_reshape(dw, shape)]
    }

    fn layer_norm_fwd(x: CubeTensor, w: CubeTensor, b: CubeTensor, eps: f64) -> CubeTensor {
        let dtype = x.dtype;
        norm(x, w, Some(b), eps, 0.0, dtype)
    }

    fn layer_norm_bwd(x: CubeTensor, w: CubeTensor, dy: CubeTensor, eps: f64) -> [CubeTensor; 3] {
        let shape = w.shape();
        let d = shape.num_elements();
        let [dx, sums] = gradients(x, w, dy, eps, true);
        let part = |from: usize| {
            let of = Slice::new(from as isize, Some((from + d) as isize), 1);
            Self::float_reshape(Self::float_slice(sums.clone(), &[Slice::new(0, Some(1), 1), of]), shape.clone())
        };
        [dx, part(0), part(d)]
    }
}
