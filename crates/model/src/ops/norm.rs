//! Norms over the last dimension: x / sqrt(mean(x²) + eps) · w (RMSNorm, Zhang & Sennrich 2019,
//! <https://arxiv.org/abs/1910.07467>), and (x − mean) / sqrt(variance + eps) · w + b (LayerNorm, Ba et al. 2016,
//! <https://arxiv.org/abs/1607.06450>).

use burn::backend::{
    Autodiff, Backend, Dispatch, Flex, TensorMetadata, autodiff::checkpoint::strategy::CheckpointStrategy, backend_extension,
    flex::FlexTensor, tensor::FloatTensor,
};
use burn::tensor::{Shape, Tensor};
use rayon::prelude::*;

use super::autodiff::simple;
use super::{flex::*, simd};

pub(crate) trait NormKernels: Backend {
    fn rms_norm_fwd(x: FloatTensor<Self>, w: FloatTensor<Self>, eps: f64) -> FloatTensor<Self> {
        composed_rms_fwd::<Self>(x, w, eps)
    }
    /// Returns the gradients of x and w.
    fn rms_norm_bwd(x: FloatTensor<Self>, w: FloatTensor<Self>, dy: FloatTensor<Self>, eps: f64) -> [FloatTensor<Self>; 2] {
        composed_rms_bwd::<Self>(x, w, dy, eps)
    }
    fn layer_norm_fwd(x: FloatTensor<Self>, w: FloatTensor<Self>, b: FloatTensor<Self>, eps: f64) -> FloatTensor<Self> {
        composed_layer_fwd::<Self>(x, w, b, eps)
    }
    /// Returns the gradients of x, w and b.
    fn layer_norm_bwd(x: FloatTensor<Self>, w: FloatTensor<Self>, dy: FloatTensor<Self>, eps: f64) -> [FloatTensor<Self>; 3] {
        composed_layer_bwd::<Self>(x, w, dy, eps)
    }
}

/// Reshapes a vector of the last dimension to the rank of `like`.
fn last<B: Backend>(w: FloatTensor<B>, like: &FloatTensor<B>) -> FloatTensor<B> {
    let mut shape = vec![1; like.shape().num_dims()];
    shape[like.shape().num_dims() - 1] = w.shape().num_elements();
    B::float_reshape(w, Shape::from(shape))
}

/// The mean over the last dimension.
fn mean<B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
    let dim = x.shape().num_dims() - 1;
    B::float_mean_dim(x, dim)
}

fn centred<B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
    B::float_sub(x.clone(), mean::<B>(x))
}

/// Returns x·r with r = 1 / sqrt(mean(x²) + eps), and r.
fn scaled<B: Backend>(x: FloatTensor<B>, eps: f64) -> (FloatTensor<B>, FloatTensor<B>) {
    let mean_square = mean::<B>(B::float_mul(x.clone(), x.clone()));
    let r = B::float_recip(B::float_sqrt(B::float_add_scalar(mean_square, eps.into())));
    (B::float_mul(x, r.clone()), r)
}

/// The sum over all dimensions except the last.
fn over_rows<B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
    let rank = x.shape().num_dims();
    let x = (0..rank - 1).fold(x, |x, dim| B::float_sum_dim(x, dim));
    let d = x.shape().num_elements();
    B::float_reshape(x, Shape::from([d]))
}

fn composed_rms_bwd<B: Backend>(x: FloatTensor<B>, w: FloatTensor<B>, dy: FloatTensor<B>, eps: f64) -> [FloatTensor<B>; 2] {
    let w = last::<B>(w, &x);
    let (xr, r) = scaled::<B>(x, eps);
    let gw = B::float_mul(dy.clone(), w);
    let c = mean::<B>(B::float_mul(gw.clone(), xr.clone()));
    let dx = B::float_mul(r, B::float_sub(gw, B::float_mul(xr.clone(), c)));
    [dx, over_rows::<B>(B::float_mul(dy, xr))]
}

fn composed_rms_fwd<B: Backend>(x: FloatTensor<B>, w: FloatTensor<B>, eps: f64) -> FloatTensor<B> {
    let w = last::<B>(w, &x);
    B::float_mul(scaled::<B>(x, eps).0, w)
}

fn composed_layer_fwd<B: Backend>(x: FloatTensor<B>, w: FloatTensor<B>, b: FloatTensor<B>, eps: f64) -> FloatTensor<B> {
    let b = last::<B>(b, &x);
    B::float_add(composed_rms_fwd::<B>(centred::<B>(x), w, eps), b)
}

/// The backward pass of LayerNorm. On a centred x, LayerNorm is an RMSNorm, and the gradient of centring is centring.
fn composed_layer_bwd<B: Backend>(x: FloatTensor<B>, w: FloatTensor<B>, dy: FloatTensor<B>, eps: f64) -> [FloatTensor<B>; 3] {
    let d_bias = over_rows::<B>(dy.clone());
    let [dx, dw] = composed_rms_bwd::<B>(centred::<B>(x), w, dy, eps);
    [centred::<B>(dx), dw, d_bias]
}

/// Computes y from rows of x, with about [`GRAIN`] elements per task. `row` must write all of a row of y.
fn rows(x: &FlexTensor, d: usize, row: impl Fn(&[f32], &mut Uninit) + Sync) -> FlexTensor {
    let xs = f32s(x);
    assert!(xs.len().is_multiple_of(d));
    let step = (GRAIN / d).max(1) * d;
    let mut y = uninit(xs.len());
    y.par_chunks_mut(step).zip(xs.par_chunks(step)).for_each(|(y, x)| {
        y.chunks_exact_mut(d).zip(x.chunks_exact(d)).for_each(|(y, x)| row(x, y));
    });
    // SAFETY: `row` has written every row of y.
    from_vec(unsafe { written(y) }, x.shape())
}

/// Computes dx from rows of x and dy, and N sums over the rows, [N · d]. `row` must write all of a row of dx. Tasks have a fixed size and their results are summed in
/// order, so the result does not depend on the thread count.
fn rows_bwd<const N: usize>(
    x: &FlexTensor,
    dy: &FlexTensor,
    d: usize,
    row: impl Fn(&[f32], &[f32], &mut Uninit, &mut [f32]) + Sync,
) -> (FlexTensor, [FlexTensor; N]) {
    let (xs, ds) = (f32s(x), f32s(dy));
    assert!(xs.len() == ds.len() && xs.len().is_multiple_of(d));
    let step = (4 * GRAIN / d).max(1) * d;
    let mut dx = uninit(xs.len());
    let tasks = dx.par_chunks_mut(step).zip(xs.par_chunks(step)).zip(ds.par_chunks(step));
    let parts = tasks.map(|((dx, x), dy)| {
        let mut sums = vec![0f32; N * d];
        for ((dx, x), dy) in dx.chunks_exact_mut(d).zip(x.chunks_exact(d)).zip(dy.chunks_exact(d)) {
            row(x, dy, dx, &mut sums);
        }
        sums
    });
    let mut sums = vec![0f32; N * d];
    parts.collect::<Vec<_>>().iter().for_each(|part| simd::axpy(1.0, part, &mut sums));
    let sums = std::array::from_fn(|i| from_vec(sums[i * d..(i + 1) * d].to_vec(), Shape::from([d])));
    // SAFETY: `row` has written every row of dx.
    (from_vec(unsafe { written(dx) }, x.shape()), sums)
}

impl NormKernels for Flex {
    fn rms_norm_fwd(x: FlexTensor, w: FlexTensor, eps: f64) -> FlexTensor {
        if !all_f32(&[&x, &w]) {
            return composed_rms_fwd::<Self>(x, w, eps);
        }
        let [x, w] = [x, w].map(dense);
        let w = f32s(&w);
        rows(&x, w.len(), |x, y| simd::rms_row(x, w, eps as f32, y))
    }

    fn rms_norm_bwd(x: FlexTensor, w: FlexTensor, dy: FlexTensor, eps: f64) -> [FlexTensor; 2] {
        if !all_f32(&[&x, &w, &dy]) {
            return composed_rms_bwd::<Self>(x, w, dy, eps);
        }
        let [x, w, dy] = [x, w, dy].map(dense);
        let w = f32s(&w);
        let (dx, [dw]) = rows_bwd(&x, &dy, w.len(), |x, dy, dx, dw| simd::rms_row_bwd(x, w, dy, eps as f32, dx, dw));
        [dx, dw]
    }

    fn layer_norm_fwd(x: FlexTensor, w: FlexTensor, b: FlexTensor, eps: f64) -> FlexTensor {
        if !all_f32(&[&x, &w, &b]) {
            return composed_layer_fwd::<Self>(x, w, b, eps);
        }
        let [x, w, b] = [x, w, b].map(dense);
        let (w, b) = (f32s(&w), f32s(&b));
        rows(&x, w.len(), |x, y| simd::layer_row(x, w, b, eps as f32, y))
    }

    fn layer_norm_bwd(x: FlexTensor, w: FlexTensor, dy: FlexTensor, eps: f64) -> [FlexTensor; 3] {
        if !all_f32(&[&x, &w, &dy]) {
            return composed_layer_bwd::<Self>(x, w, dy, eps);
        }
        let [x, w, dy] = [x, w, dy].map(dense);
        let w = f32s(&w);
        let (dx, [dw, db]) = rows_bwd(&x, &dy, w.len(), |x, dy, dx, sums| {
            let (dw, db) = sums.split_at_mut(w.len());
            simd::layer_row_bwd(x, w, dy, eps as f32, dx, dw, db);
        });
        [dx, dw, db]
    }
}

#[backend_extension(Flex, Cube: cfg(feature = "gpu"), Autodiff)]
pub(crate) trait NormOp: Backend {
    fn rms_norm(x: FloatTensor<Self>, w: FloatTensor<Self>, eps: f64) -> FloatTensor<Self>;
    fn layer_norm(x: FloatTensor<Self>, w: FloatTensor<Self>, b: FloatTensor<Self>, eps: f64) -> FloatTensor<Self>;
}
super::route::route!(NormOp, NormKernels {
    fn rms_norm(x: FloatTensor<Self>, w: FloatTensor<Self>, eps: f64) = rms_norm_fwd;
    fn layer_norm(x: FloatTensor<Self>, w: FloatTensor<Self>, b: FloatTensor<Self>, eps: f64) = layer_norm_fwd;
});

impl<B: NormKernels, C: CheckpointStrategy> NormOp for Autodiff<B, C> {
    fn rms_norm(x: FloatTensor<Self>, w: FloatTensor<Self>, eps: f64) -> FloatTensor<Self> {
        let forward = |[x, w]: [_; 2], eps: &f64| B::rms_norm_fwd(x, w, *eps);
        simple::<B, C, _, 2, 2>([x, w], eps, forward, |[x, w], eps, dy| B::rms_norm_bwd(x, w, dy, eps))
    }

    fn layer_norm(x: FloatTensor<Self>, w: FloatTensor<Self>, b: FloatTensor<Self>, eps: f64) -> FloatTensor<Self> {
        let forward = |[x, w, b]: [_; 3], eps: &f64| B::layer_norm_fwd(x, w, b, *eps);
        simple::<B, C, _, 3, 2>([x, w, b], eps, forward, |[x, w], eps, dy| B::layer_norm_bwd(x, w, dy, eps))
    }
}

/// `x [.., d]`, `w [d]` -> x / sqrt(mean(x²) + eps) · (offset + w) over the last dimension; Gemma's offset is 1, others' 0.
pub fn rms_norm<const D: usize>(x: Tensor<D>, w: Tensor<1>, eps: f64, offset: f64) -> Tensor<D> {
    assert_eq!(x.dims()[D - 1], w.dims()[0]);
    let w = if offset == 0.0 { w } else { w + offset };
    Tensor::from_dispatch(Dispatch::rms_norm(x.into_dispatch(), w.into_dispatch(), eps))
}

/// `x [.., d]`, `w` and `b` `[d]` -> (x − mean) / sqrt(variance + eps) · w + b over the last dimension.
pub fn layer_norm<const D: usize>(x: Tensor<D>, w: Tensor<1>, b: Tensor<1>, eps: f64) -> Tensor<D> {
    assert_eq!([w.dims(), b.dims()], [[x.dims()[D - 1]]; 2]);
    Tensor::from_dispatch(Dispatch::layer_norm(x.into_dispatch(), w.into_dispatch(), b.into_dispatch(), eps))
}
