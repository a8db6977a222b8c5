//! RMSNorm: x / sqrt(mean(x²) + eps) · w over the last dimension (Zhang & Sennrich 2019, <https://arxiv.org/abs/1910.07467>).

use burn::backend::{
    Autodiff, Backend, Dispatch, Flex, TensorMetadata,
    autodiff::{
        NodeId,
        checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
        grads::Gradients,
        ops::{Backward, Ops, OpsKind},
    },
    backend_extension,
    flex::FlexTensor,
    tensor::FloatTensor,
};
use burn::tensor::{Shape, Tensor};
use rayon::prelude::*;

use super::{flex::*, simd};

pub trait RmsNormKernels: Backend {
    fn rms_norm_fwd(x: FloatTensor<Self>, w: FloatTensor<Self>, eps: f64) -> FloatTensor<Self> {
        composed_fwd::<Self>(x, w, eps)
    }
    /// Gradients of x and w
    fn rms_norm_bwd(x: FloatTensor<Self>, w: FloatTensor<Self>, dy: FloatTensor<Self>, eps: f64) -> [FloatTensor<Self>; 2] {
        composed_bwd::<Self>(x, w, dy, eps)
    }
}

/// 1 / sqrt(mean(x²) + eps), w with x's rank, and the last dimension.
fn parts<B: Backend>(x: FloatTensor<B>, w: FloatTensor<B>, eps: f64) -> (FloatTensor<B>, FloatTensor<B>, usize) {
    let last = x.shape().num_dims() - 1;
    let mean_square = B::float_mean_dim(B::float_mul(x.clone(), x), last);
    let r = B::float_recip(B::float_sqrt(B::float_add_scalar(mean_square, eps.into())));
    let mut shape = vec![1; last + 1];
    shape[last] = w.shape().num_elements();
    (r, B::float_reshape(w, Shape::from(shape)), last)
}

fn composed_fwd<B: Backend>(x: FloatTensor<B>, w: FloatTensor<B>, eps: f64) -> FloatTensor<B> {
    let (r, w, _) = parts::<B>(x.clone(), w, eps);
    B::float_mul(B::float_mul(x, r), w)
}

fn composed_bwd<B: Backend>(x: FloatTensor<B>, w: FloatTensor<B>, dy: FloatTensor<B>, eps: f64) -> [FloatTensor<B>; 2] {
    let w_shape = w.shape();
    let (r, w, last) = parts::<B>(x.clone(), w, eps);
    let xr = B::float_mul(x, r.clone());
    let gw = B::float_mul(dy.clone(), w);
    let c = B::float_mean_dim(B::float_mul(gw.clone(), xr.clone()), last);
    let dx = B::float_mul(r, B::float_sub(gw, B::float_mul(xr.clone(), c)));
    let dw = (0..last).fold(B::float_mul(dy, xr), |dw, dim| B::float_sum_dim(dw, dim));
    [dx, B::float_reshape(dw, w_shape)]
}

impl RmsNormKernels for Flex {
    fn rms_norm_fwd(x: FlexTensor, w: FlexTensor, eps: f64) -> FlexTensor {
        if !all_f32(&[&x, &w]) {
            return composed_fwd::<Self>(x, w, eps);
        }
        let (x, w) = (dense(x), dense(w));
        let (xs, ws) = (f32s(&x), f32s(&w));
        let d = ws.len();
        let step = (GRAIN / d).max(1) * d;
        let mut y = uninit(xs.len());
        y.par_chunks_mut(step).zip(xs.par_chunks(step)).for_each(|(y, x)| {
            for (y, x) in y.chunks_exact_mut(d).zip(x.chunks_exact(d)) {
                simd::rms_row(x, ws, eps as f32, y);
            }
        });
        from_vec(y, x.shape())
    }

    fn rms_norm_bwd(x: FlexTensor, w: FlexTensor, dy: FlexTensor, eps: f64) -> [FlexTensor; 2] {
        if !all_f32(&[&x, &w, &dy]) {
            return composed_bwd::<Self>(x, w, dy, eps);
        }
        let (x, w, dy) = (dense(x), dense(w), dense(dy));
        let (xs, ws, ds) = (f32s(&x), f32s(&w), f32s(&dy));
        let d = ws.len();
        // Fixed task size and an ordered sum: dw does not depend on the thread count.
        let step = (4 * GRAIN / d).max(1) * d;
        let mut dx = uninit(xs.len());
        let parts: Vec<Vec<f32>> = dx
            .par_chunks_mut(step)
            .zip(xs.par_chunks(step))
            .zip(ds.par_chunks(step))
            .map(|((dx, x), dy)| {
                let mut dw = vec![0f32; d];
                for ((dx, x), dy) in dx.chunks_exact_mut(d).zip(x.chunks_exact(d)).zip(dy.chunks_exact(d)) {
                    simd::rms_row_bwd(x, ws, dy, eps as f32, dx, &mut dw);
                }
                dw
            })
            .collect();
        let mut dw = vec![0f32; d];
        for part in &parts {
            simd::axpy(1.0, part, &mut dw);
        }
        [from_vec(dx, x.shape()), from_vec(dw, w.shape())]
    }
}

#[backend_extension(Flex, Cube: cfg(feature = "cuda"), Autodiff)]
pub trait RmsNormOp: Backend {
    fn rms_norm(x: FloatTensor<Self>, w: FloatTensor<Self>, eps: f64) -> FloatTensor<Self>;
}
super::route!(RmsNormOp, RmsNormKernels { fn rms_norm(x: FloatTensor<Self>, w: FloatTensor<Self>, eps: f64) = rms_norm_fwd; });

impl<B: RmsNormKernels, C: CheckpointStrategy> RmsNormOp for Autodiff<B, C> {
    fn rms_norm(x: FloatTensor<Self>, w: FloatTensor<Self>, eps: f64) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct RmsNorm;
        impl<B: RmsNormKernels> Backward<B, 2> for RmsNorm {
            type State = ([NodeId; 2], f64);
            fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, saved: &mut Checkpointer) {
                let dy = grads.consume::<B>(&ops.node);
                let (ids, eps) = ops.state;
                let [x, w]: [FloatTensor<B>; 2] = ids.map(|id| saved.retrieve_node_output(id));
                for (parent, d) in ops.parents.into_iter().zip(B::rms_norm_bwd(x, w, dy, eps)) {
                    if let Some(parent) = parent {
                        grads.register::<B>(parent.id, d);
                    }
                }
            }
        }
        match RmsNorm.prepare::<C>([x.node(), w.node()]).compute_bound().stateful() {
            OpsKind::Tracked(mut prep) => {
                let state = ([prep.checkpoint(&x), prep.checkpoint(&w)], eps);
                prep.finish(state, B::rms_norm_fwd(x.into_primitive(), w.into_primitive(), eps))
            }
            OpsKind::UnTracked(prep) => prep.finish(B::rms_norm_fwd(x.into_primitive(), w.into_primitive(), eps)),
        }
    }
}

/// x [.., d], w [d] -> x / sqrt(mean(x²) + eps) · w over the last dimension.
pub fn rms_norm<const D: usize>(x: Tensor<D>, w: Tensor<1>, eps: f64) -> Tensor<D> {
    assert_eq!(x.dims()[D - 1], w.dims()[0]);
    Tensor::from_dispatch(Dispatch::rms_norm(x.into_dispatch(), w.into_dispatch(), eps))
}
