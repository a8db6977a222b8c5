//! Turns projections into heads in one kernel, for passes without gradients: bias, norm over each head, rotation. One cube per
//! row and head.

use burn::backend::TensorMetadata;
use burn::tensor::Shape;
use burn_cubecl::cubecl;
use burn_cubecl::cubecl::prelude::*;
use burn_cubecl::tensor::CubeTensor;

use super::launch::{buffer, dense, elem, empty, grid};
use super::rows::Rows;
use super::sum::sum_of_units;

/// The steps of a kernel, all known at compile time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct HeadSteps {
    d: usize,
    /// The rotated pairs of a head; 0 for learned positions.
    half: usize,
    bias: bool,
    norm: bool,
    units: usize,
}

/// Reads the head at `from` in x and writes the finished head at `start` in y. Its bias begins at `column`, its angles at
/// `angles`.
#[cube]
fn finish<X: Float, B: Float, W: Float, A: Float>(
    x: &[X],
    bias: &[B],
    weight: &[W],
    cos: &[A],
    sin: &[A],
    y: &mut [X],
    head: &mut [f32],
    scratch: &mut [f32],
    from: usize,
    start: usize,
    column: usize,
    angles: usize,
    eps: f32,
    offset: f32,
    #[comptime] normed: bool,
    #[comptime] rotated: bool,
    #[comptime] steps: HeadSteps,
) {
    let d = comptime!(steps.d);
    let half = comptime!(steps.half);
    let units = comptime!(steps.units);
    let mut squares = 0f32;
    for i in range_stepped(UNIT_POS as usize, d, units) {
        let mut value = f32::cast_from(x[from + i]);
        if comptime!(steps.bias) {
            value += f32::cast_from(bias[column + i]);
        }
        head[i] = value;
        squares += value * value;
    }
    sync_cube();
    if normed {
        let r = 1f32 / f32::sqrt(sum_of_units(squares, scratch, units) / f32::cast_from(d) + eps);
        for i in range_stepped(UNIT_POS as usize, d, units) {
            let value = head[i];
            head[i] = value * r * (offset + f32::cast_from(weight[i]));
        }
        sync_cube();
    }
    for i in range_stepped(UNIT_POS as usize, d, units) {
        let mut value = head[i];
        if rotated {
            if i < half {
                value = value * f32::cast_from(cos[angles + i]) - head[i + half] * f32::cast_from(sin[angles + i]);
            } else if i < 2 * half {
                let angle = angles + i - half;
                value = value * f32::cast_from(cos[angle]) + head[i - half] * f32::cast_from(sin[angle]);
            }
        }
        y[start + i] = X::cast_from(value);
    }
}

#[cube(launch)]
fn finish_all<X: Float, B: Float, W: Float, A: Float>(
    q: &[X],
    k: &[X],
    v: &[X],
    q_bias: &[B],
    k_bias: &[B],
    v_bias: &[B],
    q_weight: &[W],
    k_weight: &[W],
    cos: &[A],
    sin: &[A],
    q_out: &mut [X],
    k_out: &mut [X],
    v_out: &mut [X],
    rows: usize,
    heads: usize,
    kv_heads: usize,
    q_stride: usize,
    k_stride: usize,
    v_stride: usize,
    eps: f32,
    offset: f32,
    #[comptime] steps: HeadSteps,
    #[define(X, B, W, A)] _dtypes: [ElemType; 4],
) {
    let mut all = heads + kv_heads;
    if comptime!(steps.bias) {
        all += kv_heads;
    }
    let row = CUBE_POS / all;
    if row >= rows {
        terminate!();
    }
    let head = CUBE_POS % all;
    let d = comptime!(steps.d);
    let angles = row * comptime!(steps.half);
    let norm = comptime!(steps.norm);
    let rotated = comptime!(steps.half > 0);
    let mut numbers = Shared::<[f32]>::new_slice(d);
    let mut scratch = Shared::<[f32]>::new_slice(comptime!(steps.units));
    if head < heads {
        let start = (row * heads + head) * d;
        finish::<X, B, W, A>(
            q,
            q_bias,
            q_weight,
            cos,
            sin,
            q_out,
            &mut numbers,
            &mut scratch,
            row * q_stride + head * d,
            start,
            head * d,
            angles,
            eps,
            offset,
            norm,
            rotated,
            steps,
        );
    } else if head < heads + kv_heads {
        let head = head - heads;
        let start = (row * kv_heads + head) * d;
        finish::<X, B, W, A>(
            k,
            k_bias,
            k_weight,
            cos,
            sin,
            k_out,
            &mut numbers,
            &mut scratch,
            row * k_stride + head * d,
            start,
            head * d,
            angles,
            eps,
            offset,
            norm,
            rotated,
            steps,
        );
    } else {
        let head = head - heads - kv_heads;
        let start = (row * kv_heads + head) * d;
        finish::<X, B, W, A>(
            v,
            v_bias,
            k_weight,
            cos,
            sin,
            v_out,
            &mut numbers,
            &mut scratch,
            row * v_stride + head * d,
            start,
            head * d,
            angles,
            eps,
            offset,
            false,
            false,
            steps,
        );
    }
}

/// The parameters of [`finish_heads`]; `None` for steps that the model lacks.
pub(crate) struct FinishParams {
    /// The biases of q, k and v, [heads · d] each.
    pub bias: Option<[CubeTensor; 3]>,
    /// The weights of the norms over each head of q and k, `[d]`, with the norms' eps and the offset added to the weights.
    pub norm: Option<([CubeTensor; 2], f64, f64)>,
    /// cos and sin [rows, rotated / 2].
    pub rotation: Option<[CubeTensor; 2]>,
}

/// Finishes the projections q [rows, heads · d] and k, v [rows, kv heads · d] -> q, k, v [rows, heads, d].
pub(crate) fn finish_heads(qkv: [CubeTensor; 3], [heads, kv_heads, d]: [usize; 3], with: FinishParams) -> [CubeTensor; 3] {
    let [q, k, v] = qkv.map(Rows::new);
    let rows = q.rows;
    let shaped = |mut x: CubeTensor, heads: usize| {
        x.meta = Box::new(burn_cubecl::cubecl::zspace::metadata::Metadata::new(
            Shape::from([rows, heads, d]),
            burn_cubecl::cubecl::zspace::strides![heads * d, d, 1],
        ));
        x
    };
    let out = |heads: usize| empty(&q.tensor, [rows, heads, d], q.tensor.dtype);
    let (q_out, k_out) = (out(heads), out(kv_heads));
    let (has_bias, has_norm) = (with.bias.is_some(), with.norm.is_some());
    let (bias, rotation) = (with.bias.map(|bias| bias.map(dense)), with.rotation.map(|rotation| rotation.map(dense)));
    let (weights, eps, offset) = match with.norm {
        Some((weights, eps, offset)) => (Some(weights.map(dense)), eps as f32, offset as f32),
        None => (None, 0.0, 0.0),
    };
    // A kernel needs a buffer for each argument. The kernel does not read the buffers of missing steps.
    let v_out = if has_bias { out(kv_heads) } else { shaped(dense(v.tensor.clone()), kv_heads) };
    let [q_bias, k_bias, v_bias] = bias.unwrap_or_else(|| std::array::from_fn(|_| q.tensor.clone()));
    let [q_weight, k_weight] = weights.unwrap_or_else(|| std::array::from_fn(|_| q.tensor.clone()));
    let half = rotation.as_ref().map_or(0, |[cos, _]| cos.shape()[1]);
    let [cos, sin] = rotation.unwrap_or_else(|| std::array::from_fn(|_| q.tensor.clone()));
    let units = d.next_power_of_two().clamp(32, 256);
    let all = heads + kv_heads * if has_bias { 2 } else { 1 };
    finish_all::launch(
        &q.tensor.client,
        grid(rows * all),
        CubeDim::new_1d(units as u32),
        q.buffer(),
        k.buffer(),
        v.buffer(),
        buffer(&q_bias),
        buffer(&k_bias),
        buffer(&v_bias),
        buffer(&q_weight),
        buffer(&k_weight),
        buffer(&cos),
        buffer(&sin),
        buffer(&q_out),
        buffer(&k_out),
        buffer(&v_out),
        rows,
        heads,
        kv_heads,
        q.stride,
        k.stride,
        v.stride,
        eps,
        offset,
        HeadSteps { d, half, bias: has_bias, norm: has_norm, units },
        [elem(&q.tensor), elem(&q_bias), elem(&q_weight), elem(&cos)],
    );
    [q_out, k_out, v_out]
}
