//! Products with a frozen weight [out, in] in NF4. A few rows of x, as in decoding, are multiplied by a kernel that reads the codes.
//! More rows are multiplied by burn's matmul, for which parts of the weight are dequantised one after another: the memory is that of
//! the codes and of one part.
//!
//! Values are rounded to the dtype of x after the product of code and scale in f32. In f32 they are the CPU's, bit for bit.

use std::ops::Range;
use std::sync::Arc;

use burn::backend::ops::FloatTensorOps;
use burn::backend::{Cube, TensorMetadata};
use burn::tensor::DType;
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::launch::{buffer, cube_dim, cube_of, elem, empty, grid, grid_of_units, row_of_cube, units_of};
use super::rows::Rows;
use super::split::rounded;
use super::sum::sum_of_units;
use crate::nf4::{BLOCK, GROUP, GpuNf4, LARGEST_PART, Nf4Weight, OFFSET};
use crate::ops::linear::LinearKernels;
use crate::ops::nf4::Nf4Kernels;

/// The largest number of rows that are multiplied without dequantising the weight to memory. Each value then takes half a byte of
/// traffic in place of 4.5 bytes in bf16, but each further row reads x again.
const FEW: usize = 8;
/// Codes in a word.
const CODES: usize = 8;
/// Values of a code.
const LEVELS: usize = 16;

/// Returns the scale of a block. With double quantisation (`nested`), the product is rounded before the sum, as on the CPU.
#[cube]
fn scale_of(block: usize, scales: &[f32], scale_codes: &[u32], tables: &[f32], zero: u32, #[comptime] nested: bool) -> f32 {
    if comptime!(nested) {
        let code = (scale_codes[block / 4] >> ((block % 4) as u32 * 8u32)) & 255u32;
        let product = tables[LEVELS + code as usize] * scales[block / GROUP];
        rounded(product, zero) + tables[OFFSET]
    } else {
        scales[block]
    }
}

/// Writes the values of `width` columns of the weight from (`row`, `column`) on, one unit per value.
#[cube(launch)]
fn dequantise<F: Float>(
    codes: &[u32],
    scales: &[f32],
    scale_codes: &[u32],
    tables: &[f32],
    part: &mut [F],
    columns: usize,
    row: usize,
    column: usize,
    width: usize,
    count: usize,
    zero: u32,
    #[comptime] nested: bool,
    #[define(F)] _dtype: ElemType,
) {
    if ABSOLUTE_POS >= count {
        terminate!();
    }
    let place = (row + ABSOLUTE_POS / width) * columns + column + ABSOLUTE_POS % width;
    let code = code_at(codes[place / CODES], (place % CODES) as u32);
    part[ABSOLUTE_POS] = F::cast_from(tables[code] * scale_of(place / BLOCK, scales, scale_codes, tables, zero, nested));
}

/// Returns the code of a word. Of two codes in a byte, the first is in the upper half.
#[cube]
fn code_at(word: u32, number: u32) -> usize {
    ((word >> ((number ^ 1u32) * 4u32)) & 15u32) as usize
}

/// y = x·wᵀ for the comptime number of `rows`. One cube per row of the weight, whose units take turns at the words of its codes.
#[cube(launch)]
fn few_rows<X: Float>(
    x: &[X],
    codes: &[u32],
    scales: &[f32],
    scale_codes: &[u32],
    tables: &[f32],
    y: &mut [X],
    outputs: usize,
    columns: usize,
    x_stride: usize,
    zero: u32,
    #[comptime] rows: usize,
    #[comptime] nested: bool,
    #[comptime] units: usize,
    #[define(X)] _dtype: ElemType,
) {
    let output = row_of_cube(outputs);
    let unit = UNIT_POS as usize;
    let mut scratch = Shared::<[f32]>::new_slice(units);
    let mut levels = Shared::<[f32]>::new_slice(LEVELS);
    if unit < LEVELS {
        levels[unit] = tables[unit];
    }
    sync_cube();
    let start = output * columns;
    let end = start + columns;
    let mut sums = Array::<f32>::new(rows);
    #[unroll]
    for row in 0..rows {
        sums[row] = 0f32;
    }
    let mut word = start / CODES + unit;
    while word * CODES < end {
        let packed = codes[word];
        let scale = scale_of(word * CODES / BLOCK, scales, scale_codes, tables, zero, nested);
        #[unroll]
        for number in 0..CODES {
            // The first and the last word may have codes of the rows before and after.
            let place = word * CODES + number;
            if place >= start && place < end {
                let value = f32::cast_from(X::cast_from(levels[code_at(packed, number as u32)] * scale));
                #[unroll]
                for row in 0..rows {
                    sums[row] += value * f32::cast_from(x[row * x_stride + (place - start)]);
                }
            }
        }
        word += units;
    }
    #[unroll]
    for row in 0..rows {
        let sum = sum_of_units(sums[row], &mut scratch, units);
        if unit == 0 {
            y[row * outputs + output] = X::cast_from(sum);
        }
    }
}

/// Dequantises some rows and columns -> [rows, columns] in `dtype`.
fn part(w: &GpuNf4, rows: Range<usize>, columns: Range<usize>, dtype: DType) -> CubeTensor {
    let part = empty(&w.tables, [rows.len(), columns.len()], dtype);
    let count = rows.len() * columns.len();
    dequantise::launch(
        &w.tables.client,
        grid_of_units(count),
        cube_dim(),
        buffer(&w.codes),
        buffer(&w.scales),
        buffer(w.scale_codes.as_ref().unwrap_or(&w.codes)),
        buffer(&w.tables),
        buffer(&part),
        w.shape()[1],
        rows.start,
        columns.start,
        columns.len(),
        count,
        // A runtime zero, so that compilers do not know its value.
        0,
        w.scale_codes.is_some(),
        elem(&part),
    );
    part
}

/// Multiplies x [n, in] with at most [`FEW`] rows.
fn few(x: CubeTensor, w: &GpuNf4) -> CubeTensor {
    let ([outputs, columns], x) = (w.shape(), Rows::new(x));
    let y = empty(&x.tensor, [x.rows, outputs], x.tensor.dtype);
    let units = units_of(columns.div_ceil(CODES));
    few_rows::launch(
        &x.tensor.client,
        grid(outputs),
        cube_of(units),
        x.buffer(),
        buffer(&w.codes),
        buffer(&w.scales),
        buffer(w.scale_codes.as_ref().unwrap_or(&w.codes)),
        buffer(&w.tables),
        buffer(&y),
        outputs,
        columns,
        x.stride,
        0,
        x.rows,
        w.scale_codes.is_some(),
        units,
        elem(&y),
    );
    y
}

/// Returns a result [n, width] whose columns are computed in ranges, with at most `largest` values of the weight for each; a column
/// takes `each` of them. No range adds to another, so the sums are those of a whole product.
fn by_parts(width: usize, each: usize, largest: usize, product: impl Fn(Range<usize>) -> CubeTensor) -> CubeTensor {
    let step = (largest / each).max(1);
    let mut parts: Vec<CubeTensor> = (0..width).step_by(step).map(|first| product(first..width.min(first + step))).collect();
    if parts.len() == 1 { parts.remove(0) } else { Cube::float_cat(parts, 1) }
}

/// x·wᵀ, with parts of at most `largest` values.
fn product_by_parts(x: &CubeTensor, w: &GpuNf4, largest: usize) -> CubeTensor {
    let [outputs, columns] = w.shape();
    let product = |rows| Cube::without_bias(x.clone(), part(w, rows, 0..columns, x.dtype));
    by_parts(outputs, columns, largest, product)
}

/// dy·w, with parts of at most `largest` values.
fn gradient_by_parts(dy: &CubeTensor, w: &GpuNf4, largest: usize) -> CubeTensor {
    let [outputs, columns] = w.shape();
    let product = |columns| Cube::input_bwd(part(w, 0..outputs, columns, dy.dtype), dy.clone());
    by_parts(columns, outputs, largest, product)
}

impl Nf4Kernels for Cube {
    fn product(x: CubeTensor, w: Arc<Nf4Weight>) -> CubeTensor {
        let w = w.on_gpu();
        if x.shape()[0] <= FEW { few(x, w) } else { product_by_parts(&x, w, LARGEST_PART) }
    }

    fn product_bwd(dy: CubeTensor, w: Arc<Nf4Weight>) -> CubeTensor {
        gradient_by_parts(&dy, w.on_gpu(), LARGEST_PART)
    }
}

#[cfg(all(test, feature = "wgpu"))]
mod tests {
    use burn::tensor::{Device, Tensor};

    use super::*;
    use crate::gpu_backends::any_gpu;
    use crate::nf4::Nf4Matrix;
    use crate::ops::cube::launch::{of_gpu, primitive};
    use crate::ops::{linear_frozen, linear_nf4, tensor_from_vec, to_host};

    fn values(n: usize, step: usize) -> Vec<f32> {
        (0..n).map(|i| ((i * step % 1013) as f32 - 500.0) / 500.0).collect()
    }

    fn bits(values: &[f32]) -> Vec<u32> {
        values.iter().map(|value| value.to_bits()).collect()
    }

    fn dense(values: &[f32], shape: [usize; 2], device: &Device) -> Tensor<2> {
        tensor_from_vec(values.to_vec(), shape, device)
    }

    /// Sizes that 2, 8 and 64 do not divide, one with more blocks than a group has.
    const SIZES: [[usize; 2]; 8] = [[1, 1], [1, 63], [3, 64], [5, 7], [9, 149], [70, 67], [33, 513], [512, 96]];

    /// Every part has the bits of the CPU's values, and the matrix is read back unchanged.
    #[test]
    fn dequantised_values_are_those_of_the_cpu_bit_for_bit() {
        let Some(device) = any_gpu() else { return };
        for ([rows, columns], double) in SIZES.into_iter().flat_map(|shape| [(shape, false), (shape, true)]) {
            let matrix = Nf4Matrix::new(&values(rows * columns, 613), [rows, columns], double);
            let (all, weight) = (matrix.values(), Nf4Weight::new(matrix.clone(), &device));
            assert!(*weight.read() == matrix, "{rows}×{columns}");
            let ranges = |size: usize| [0..size, size / 3..size, 0..size.div_ceil(2), size / 2..size / 2 + 1];
            for (of_rows, of_columns) in ranges(rows).into_iter().flat_map(|r| ranges(columns).map(|c| (r.clone(), c))) {
                let part = part(weight.on_gpu(), of_rows.clone(), of_columns.clone(), DType::F32);
                let own = |row: usize| &all[row * columns..][of_columns.clone()];
                let expected: Vec<f32> = of_rows.clone().flat_map(|row| own(row).to_vec()).collect();
                let found = to_host(of_gpu::<2>(part));
                assert_eq!(bits(&found), bits(&expected), "{rows}×{columns}: {of_rows:?}, {of_columns:?}");
            }
        }
    }

    #[track_caller]
    fn assert_close(what: &str, found: Tensor<2>, expected: &Tensor<2>) {
        assert_eq!(found.dims(), expected.dims(), "{what}");
        let (found, expected) = (to_host(found), to_host(expected.clone()));
        let scale = expected.iter().fold(1f32, |max, x| max.max(x.abs()));
        found.iter().zip(&expected).for_each(|(a, b)| assert!((a - b).abs() < 1e-5 * scale, "{what}: {a}, {b}"));
    }

    /// A matrix on the GPU and its values on the CPU.
    fn matrix([m, k]: [usize; 2], double: bool, device: &Device) -> (Arc<Nf4Weight>, Tensor<2>) {
        let matrix = Nf4Matrix::new(&values(m * k, 613), [m, k], double);
        let whole = dense(&matrix.values(), [m, k], &Device::flex());
        (Arc::new(Nf4Weight::new(matrix, device)), whole)
    }

    #[test]
    fn few_rows_are_multiplied_by_the_dequantised_matrix() {
        let Some(device) = any_gpu() else { return };
        for ([m, k], n) in SIZES.into_iter().flat_map(|shape| [1, 3, FEW].map(|n| (shape, n))) {
            let (w, whole) = matrix([m, k], n == 3, &device);
            let product = |device: &Device, by: &dyn Fn(Tensor<2>, Option<Tensor<1>>) -> Tensor<2>| {
                by(dense(&values(n * k, 7919), [n, k], device), Some(tensor_from_vec(values(m, 31), [m], device)))
            };
            let expected = product(&Device::flex(), &|x, bias| linear_frozen(x, whole.clone(), bias));
            assert_close(&format!("{n}×{m}×{k}"), product(&device, &|x, bias| linear_nf4(x, &w, bias)), &expected);
        }
    }

    /// Products of more rows, and gradients, whole and by parts. Generation and training have one product.
    #[test]
    fn products_and_gradients_are_those_of_the_dequantised_matrix() {
        let Some(device) = any_gpu() else { return };
        for ([m, k], n, double) in [([70, 67], FEW + 1, true), ([33, 149], 2, false)] {
            let (w, whole) = matrix([m, k], double, &device);
            let gradient = |device: &Device, product: &dyn Fn(Tensor<2>) -> Tensor<2>| {
                let [x, dy] = [(k, 7919), (m, 17)].map(|(size, step)| dense(&values(n * size, step), [n, size], device));
                let x = Tensor::from_inner(x).require_grad();
                let y = product(x.clone());
                let dx = x.grad(&(y.clone() * Tensor::from_inner(dy.clone())).sum().backward()).unwrap();
                (y.inner(), dx, [x.inner(), dy])
            };
            let whole = |x| linear_frozen(x, Tensor::from_inner(whole.clone()), None);
            let (expected, expected_dx, _) = gradient(&Device::flex(), &whole);
            let (y, dx, [x, dy]) = gradient(&device, &|x| linear_nf4(x, &w, None));
            assert_eq!(bits(&to_host(y.clone())), bits(&to_host(linear_nf4(x.clone(), &w, None))));
            assert_close("the product", y, &expected);
            assert_close("the gradient", dx, &expected_dx);
            let [x, dy] = [x, dy].map(primitive);
            let third = m * k / 3;
            assert_close("the product by parts", of_gpu(product_by_parts(&x, w.on_gpu(), third)), &expected);
            assert_close("the gradient by parts", of_gpu(gradient_by_parts(&dy, w.on_gpu(), third)), &expected_dx);
        }
    }
}
