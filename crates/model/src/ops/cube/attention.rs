//! The steps between attention's matmuls: scores, their softmax and its gradient, in one pass each over [rows, keys], one cube
//! per row. The matmuls and the fused forward pass are burn's.

use burn::backend::{Cube, TensorMetadata};
use burn::tensor::{DType, Shape};
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::blocks;
use super::launch::{buffer, cube_of, dense, elem, empty, empty_like, grid, is_left_to_burn, row_of_cube, units_of};
use super::rows::Rows;
use super::sum::{max_of_units, sum_of_units};
use crate::ops::attention::AttentionKernels;
use crate::ops::attention_blocks::Blocks;
use crate::ops::attention_scores::{ScoreKernels, ScoredRange, gradients, probabilities};

/// Below every score, yet small enough that e to it is not NaN on some drivers.
const LOWEST: f32 = -1.0e30;

/// The shape of products [segments, kv heads, group · queries, keys], whose rows begin `stride` elements apart, the keys that their
/// rows see, and the scores.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
#[expand(derive(Clone, Copy))]
struct ScoreRows {
    rows: usize,
    keys: usize,
    stride: usize,
    queries: usize,
    rows_per_segment: usize,
    /// The position of the first key.
    first_key: usize,
    window: usize,
    scale: f32,
    /// Not read without a soft cap.
    cap: f32,
    #[cube(comptime)]
    capped: bool,
}

/// Returns the keys that a row sees, as first and one past the last, counted from the first key's position. Both are 0 for a
/// row of padding. If this position is not 0, the window of every row begins at or after it.
#[cube]
fn visible_keys<I: Int>(positions: &[I], row: usize, scores: ScoreRows) -> (usize, usize) {
    let position = i32::cast_from(positions[row / scores.rows_per_segment * scores.queries + row % scores.queries]);
    let mut first = 0usize;
    let mut end = 0usize;
    if position >= 0 {
        end = usize::cast_from(position) + 1 - scores.first_key;
        if end > scores.window {
            first = end - scores.window;
        }
    }
    (first, end)
}

/// The score of a product q·k.
#[cube]
fn score<P: Float>(product: P, scores: ScoreRows) -> f32 {
    let mut score = f32::cast_from(product) * scores.scale;
    if comptime!(scores.capped) {
        score = scores.cap * f32::tanh(score / scores.cap);
    }
    score
}

#[cube(launch)]
fn softmax<P: Float, I: Int>(
    products: &[P],
    positions: &[I],
    p: &mut [P],
    lse: &mut [f32],
    scores: ScoreRows,
    #[comptime] units: usize,
    #[define(P, I)] _dtypes: [ElemType; 2],
) {
    let row = row_of_cube(scores.rows);
    let mut scratch = Shared::<[f32]>::new_slice(units);
    let start = row * scores.keys;
    let (first, end) = visible_keys::<I>(positions, row, scores);
    let mut max = f32::new(LOWEST);
    for i in range_stepped(first + UNIT_POS as usize, end, units) {
        let x = score::<P>(products[row * scores.stride + i], scores);
        if x > max {
            max = x;
        }
    }
    let max = max_of_units(max, &mut scratch, units);
    let mut sum = 0f32;
    for i in range_stepped(first + UNIT_POS as usize, end, units) {
        sum += f32::exp(score::<P>(products[row * scores.stride + i], scores) - max);
    }
    let sum = sum_of_units(sum, &mut scratch, units);
    for i in range_stepped(UNIT_POS as usize, scores.keys, units) {
        let mut value = 0f32;
        if i >= first && i < end {
            value = f32::exp(score::<P>(products[row * scores.stride + i], scores) - max) / sum;
        }
        p[start + i] = P::cast_from(value);
    }
    if UNIT_POS == 0 {
        let mut total = 0f32;
        if end > first {
            total = max + f32::ln(sum);
        }
        lse[row] = total;
    }
}

/// p = e^(score − lse), and ds = p·(dp − delta)·scale, through the soft cap if the model has one.
#[cube(launch)]
fn softmax_backward<P: Float, I: Int>(
    products: &[P],
    dp: &[P],
    lse: &[f32],
    delta: &[f32],
    positions: &[I],
    p: &mut [P],
    ds: &mut [P],
    dp_stride: usize,
    scores: ScoreRows,
    #[comptime] units: usize,
    #[define(P, I)] _dtypes: [ElemType; 2],
) {
    let row = row_of_cube(scores.rows);
    let start = row * scores.keys;
    let (first, end) = visible_keys::<I>(positions, row, scores);
    for i in range_stepped(UNIT_POS as usize, scores.keys, units) {
        let mut weight = 0f32;
        let mut d = 0f32;
        if i >= first && i < end {
            let x = score::<P>(products[row * scores.stride + i], scores);
            weight = f32::exp(x - lse[row]);
            d = weight * (f32::cast_from(dp[row * dp_stride + i]) - delta[row]) * scores.scale;
            if comptime!(scores.capped) {
                d *= 1f32 - x / scores.cap * (x / scores.cap);
            }
        }
        p[start + i] = P::cast_from(weight);
        ds[start + i] = P::cast_from(d);
    }
}

/// The [`ScoreRows`] of products, as a kernel argument. A segment has `rows_per_segment` rows.
fn shape_of(products: &Rows, rows_per_segment: usize, range: &ScoredRange<Cube>) -> ScoreRowsLaunch {
    let scoring = range.scoring();
    ScoreRowsLaunch::new(
        products.rows,
        products.width,
        products.stride,
        range.queries().range.len(),
        rows_per_segment,
        range.keys().start,
        scoring.window.unwrap_or(i32::MAX as usize),
        scoring.scale,
        scoring.softcap.unwrap_or(1.0),
        scoring.softcap.is_some(),
    )
}

impl AttentionKernels for Cube {}

impl ScoreKernels for Cube {
    fn pad(x: CubeTensor, rows: &CubeTensor, sizes: [usize; 2]) -> CubeTensor {
        blocks::pad(x, rows, sizes)
    }

    fn unpad(parts: Vec<CubeTensor>, blocks: &Blocks<Self>) -> CubeTensor {
        blocks::unpad(parts, blocks)
    }

    fn sum_of_keys(x: CubeTensor, blocks: &Blocks<Self>, dtype: DType) -> CubeTensor {
        blocks::sum_of_keys(x, blocks, dtype)
    }

    fn probabilities(products: CubeTensor, range: &ScoredRange<Self>) -> [CubeTensor; 2] {
        if is_left_to_burn(&products) {
            return probabilities::<Self>(products, range);
        }
        let shape = products.shape();
        let (p, positions) = (empty_like(&products), dense(range.queries().positions.clone()));
        let products = Rows::over(products, 3);
        let (units, lse) = (units_of(products.width), empty(&p, Shape::from([shape[0], shape[1], shape[2], 1]), DType::F32));
        softmax::launch(
            &p.client,
            grid(products.rows),
            cube_of(units),
            products.buffer(),
            buffer(&positions),
            buffer(&p),
            buffer(&lse),
            shape_of(&products, shape[1] * shape[2], range),
            units,
            [elem(&p), elem(&positions)],
        );
        [p, lse]
    }

    fn gradients(
        products: CubeTensor,
        dp: CubeTensor,
        lse: CubeTensor,
        delta: CubeTensor,
        range: &ScoredRange<Self>,
    ) -> [CubeTensor; 2] {
        if is_left_to_burn(&products) {
            return gradients::<Self>(products, dp, lse, delta, range);
        }
        let shape = products.shape();
        let [lse, delta, positions] = [lse, delta, range.queries().positions.clone()].map(dense);
        let (p, ds) = (empty_like(&products), empty_like(&products));
        let [products, dp] = [products, dp].map(|x| Rows::over(x, 3));
        let units = units_of(products.width);
        softmax_backward::launch(
            &p.client,
            grid(products.rows),
            cube_of(units),
            products.buffer(),
            dp.buffer(),
            buffer(&lse),
            buffer(&delta),
            buffer(&positions),
            buffer(&p),
            buffer(&ds),
            dp.stride,
            shape_of(&products, shape[1] * shape[2], range),
            units,
            [elem(&p), elem(&positions)],
        );
        [p, ds]
    }
}
