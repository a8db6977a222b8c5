//! y = x·wᵀ + b with the weight as Hugging Face stores it, [out, in]. On the CPU gemm reads the transposes in place and
//! writes the weight's gradient in order; burn's own ops would copy the first and give the second as a strided view.

use burn::backend::{
    Autodiff, Backend, Dispatch, Flex, TensorMetadata, autodiff::checkpoint::strategy::CheckpointStrategy, backend_extension,
    flex::FlexTensor, tensor::FloatTensor,
};
use burn::tensor::{Shape, Tensor};
use rayon::prelude::*;

use super::autodiff::{simple, wide};
use super::{flex::*, simd};

pub trait LinearKernels: Backend {
    /// x [n, in], w [out, in], b [out] -> [n, out]
    fn linear_fwd(x: FloatTensor<Self>, w: FloatTensor<Self>, b: Option<FloatTensor<Self>>) -> FloatTensor<Self> {
        composed_fwd::<Self>(x, w, b)
    }
    fn without_bias(x: FloatTensor<Self>, w: FloatTensor<Self>) -> FloatTensor<Self> {
        Self::linear_fwd(x, w, None)
    }
    fn with_bias(x: FloatTensor<Self>, w: FloatTensor<Self>, b: FloatTensor<Self>) -> FloatTensor<Self> {
        Self::linear_fwd(x, w, Some(b))
    }
    /// Gradients of x and w
    fn linear_bwd(x: FloatTensor<Self>, w: FloatTensor<Self>, dy: FloatTensor<Self>) -> [FloatTensor<Self>; 2] {
        composed_bwd::<Self>(x, w, dy)
    }
    /// Gradient of b
    fn bias_bwd(dy: FloatTensor<Self>) -> FloatTensor<Self> {
        composed_bias_bwd::<Self>(dy)
    }
}

fn composed_fwd<B: Backend>(x: FloatTensor<B>, w: FloatTensor<B>, b: Option<FloatTensor<B>>) -> FloatTensor<B> {
    let out = w.shape()[0];
    let y = B::float_matmul(x, B::float_transpose(w));
    match b {
        Some(b) => B::float_add(y, B::float_reshape(b, Shape::from([1, out]))),
        None => y,
    }
}

fn composed_bwd<B: Backend>(x: FloatTensor<B>, w: FloatTensor<B>, dy: FloatTensor<B>) -> [FloatTensor<B>; 2] {
    let dw = B::float_matmul(B::float_transpose(dy.clone()), x);
    [B::float_matmul(dy, w), dw]
}

fn composed_bias_bwd<B: Backend>(dy: FloatTensor<B>) -> FloatTensor<B> {
    let (out, dtype) = (dy.shape()[1], dy.dtype());
    B::float_cast(B::float_reshape(B::float_sum_dim(wide::<B>(dy), 0), Shape::from([out])), dtype.into())
}

impl LinearKernels for Flex {
    fn linear_fwd(x: FlexTensor, w: FlexTensor, b: Option<FlexTensor>) -> FlexTensor {
        if !all_f32(&[&x, &w]) || b.as_ref().is_some_and(|b| !all_f32(&[b])) {
            return composed_fwd::<Self>(x, w, b);
        }
        let ([x, w], b) = ([x, w].map(dense), b.map(dense));
        let ([n, width], out) = ([x.shape()[0], x.shape()[1]], w.shape()[0]);
        let mut y = uninit(n * out);
        if let Some(b) = &b {
            let b = f32s(b);
            let rows = (GRAIN / out).max(1) * out;
            y.par_chunks_mut(rows).for_each(|y| y.chunks_exact_mut(out).for_each(|y| y.copy_from_slice(b)));
        }
        let threads = threads(n, out, width);
        matmul((n, out, width), &mut y, (out, 1), b.is_some(), f32s(&x), (width, 1), f32s(&w), (1, width), threads);
        from_vec(y, Shape::from([n, out]))
    }

    fn linear_bwd(x: FlexTensor, w: FlexTensor, dy: FlexTensor) -> [FlexTensor; 2] {
        if !all_f32(&[&x, &w, &dy]) {
            return composed_bwd::<Self>(x, w, dy);
        }
        let [x, w, dy] = [x, w, dy].map(dense);
        let ([n, width], out) = ([x.shape()[0], x.shape()[1]], w.shape()[0]);
        let (mut dx, mut dw) = (uninit(n * width), uninit(out * width));
        let threads = threads(n, out, width);
        matmul((n, width, out), &mut dx, (width, 1), false, f32s(&dy), (out, 1), f32s(&w), (width, 1), threads);
        matmul((out, width, n), &mut dw, (width, 1), false, f32s(&dy), (1, out), f32s(&x), (width, 1), threads);
        [from_vec(dx, x.shape()), from_vec(dw, w.shape())]
    }

    fn bias_bwd(dy: FlexTensor) -> FlexTensor {
        if !all_f32(&[&dy]) {
            return composed_bias_bwd::<Self>(dy);
        }
        let (out, dy) = (dy.shape()[1], dense(dy));
        // Tasks of a fixed size and an ordered sum of theirs: the result does not depend on the thread count.
        let sum = |rows: &mut dyn Iterator<Item = &[f32]>| {
            let mut sum = vec![0f32; out];
            rows.for_each(|row| simd::axpy(1.0, row, &mut sum));
            sum
        };
        let tasks = f32s(&dy).par_chunks((4 * GRAIN / out).max(1) * out);
        let parts: Vec<Vec<f32>> = tasks.map(|rows| sum(&mut rows.chunks_exact(out))).collect();
        from_vec(sum(&mut parts.iter().map(Vec::as_slice)), Shape::from([out]))
    }
}

#[backend_extension(Flex, Cube: cfg(feature = "cuda"), Autodiff)]
pub trait LinearOp: Backend {
    fn linear(x: FloatTensor<Self>, w: FloatTensor<Self>) -> FloatTensor<Self>;
    fn linear_bias(x: FloatTensor<Self>, w: FloatTensor<Self>, b: FloatTensor<Self>) -> FloatTensor<Self>;
}
super::route!(LinearOp, LinearKernels {
    fn linear(x: FloatTensor<Self>, w: FloatTensor<Self>) = without_bias;
    fn linear_bias(x: FloatTensor<Self>, w: FloatTensor<Self>, b: FloatTensor<Self>) = with_bias;
});

impl<B: LinearKernels, C: CheckpointStrategy> LinearOp for Autodiff<B, C> {
    fn linear(x: FloatTensor<Self>, w: FloatTensor<Self>) -> FloatTensor<Self> {
        simple::<B, C, _, 2, 2>([x, w], (), |[x, w], _| B::without_bias(x, w), |[x, w], _, dy| B::linear_bwd(x, w, dy))
    }

    fn linear_bias(x: FloatTensor<Self>, w: FloatTensor<Self>, b: FloatTensor<Self>) -> FloatTensor<Self> {
        simple::<B, C, _, 3, 2>(
            [x, w, b],
            (),
            |[x, w, b], _| B::with_bias(x, w, b),
            |[x, w], _, dy| {
                let db = B::bias_bwd(dy.clone());
                let [dx, dw] = B::linear_bwd(x, w, dy);
                [dx, dw, db]
            },
        )
    }
}

/// x [n, in], weight [out, in], bias [out] -> [n, out].
///
/// # Panics
/// If the inner sizes differ.
pub fn linear(x: Tensor<2>, weight: Tensor<2>, bias: Option<Tensor<1>>) -> Tensor<2> {
    assert_eq!(x.dims()[1], weight.dims()[1], "{:?} by the transpose of {:?}", x.dims(), weight.dims());
    let (x, w) = (x.into_dispatch(), weight.into_dispatch());
    Tensor::from_dispatch(match bias {
        Some(b) => Dispatch::linear_bias(x, w, b.into_dispatch()),
        None => Dispatch::linear(x, w),
    })
}
