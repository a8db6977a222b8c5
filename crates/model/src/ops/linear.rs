//! y = x·wᵀ + b with the weight in Hugging Face's layout, [out, in]. On the CPU, gemm reads transposes in place and writes the
//! weight's gradient in order. burn's operations would copy the transposes and return the gradient as a strided view. A frozen
//! weight gets no gradient, and no tensor is kept for it.

use burn::backend::{
    Autodiff, Backend, Dispatch, Flex, TensorMetadata, autodiff::checkpoint::strategy::CheckpointStrategy, backend_extension,
    flex::FlexTensor, tensor::FloatTensor,
};
use burn::tensor::{Shape, Tensor};
use rayon::prelude::*;

use super::autodiff::{simple, wide};
use super::{flex::*, simd};

pub(crate) trait LinearKernels: Backend {
    /// `x [n, in], w [out, in], b [out] -> [n, out]`
    fn linear_fwd(x: FloatTensor<Self>, w: FloatTensor<Self>, b: Option<FloatTensor<Self>>) -> FloatTensor<Self> {
        composed_fwd::<Self>(x, w, b)
    }
    fn without_bias(x: FloatTensor<Self>, w: FloatTensor<Self>) -> FloatTensor<Self> {
        Self::linear_fwd(x, w, None)
    }
    fn with_bias(x: FloatTensor<Self>, w: FloatTensor<Self>, b: FloatTensor<Self>) -> FloatTensor<Self> {
        Self::linear_fwd(x, w, Some(b))
    }
    fn by_cached(x: FloatTensor<Self>, _: FloatTensor<Self>, cached: FloatTensor<Self>) -> FloatTensor<Self> {
        Self::linear_fwd(x, cached, None)
    }
    fn by_cached_with_bias(
        x: FloatTensor<Self>,
        _: FloatTensor<Self>,
        cached: FloatTensor<Self>,
        b: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        Self::linear_fwd(x, cached, Some(b))
    }
    /// Returns the gradient of x.
    fn input_bwd(w: FloatTensor<Self>, dy: FloatTensor<Self>) -> FloatTensor<Self> {
        composed_input_bwd::<Self>(w, dy)
    }
    /// Returns the gradient of w.
    fn weight_bwd(x: FloatTensor<Self>, dy: FloatTensor<Self>) -> FloatTensor<Self> {
        composed_weight_bwd::<Self>(x, dy)
    }
    /// Returns the gradient of b.
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

fn composed_input_bwd<B: Backend>(w: FloatTensor<B>, dy: FloatTensor<B>) -> FloatTensor<B> {
    B::float_matmul(dy, w)
}

fn composed_weight_bwd<B: Backend>(x: FloatTensor<B>, dy: FloatTensor<B>) -> FloatTensor<B> {
    B::float_matmul(B::float_transpose(dy), x)
}

fn composed_bias_bwd<B: Backend>(dy: FloatTensor<B>) -> FloatTensor<B> {
    let (out, dtype) = (dy.shape()[1], dy.dtype());
    B::float_cast(B::float_reshape(B::float_sum_dim(wide::<B>(dy), 0), Shape::from([out])), dtype.into())
}

/// Returns n copies of a row.
fn repeated(row: &[f32], n: usize) -> Vec<f32> {
    let mut y = uninit(n * row.len());
    let rows = (GRAIN / row.len()).max(1) * row.len();
    y.par_chunks_mut(rows).for_each(|y| {
        y.chunks_exact_mut(row.len()).for_each(|y| y.iter_mut().zip(row).for_each(|(y, x)| _ = y.write(*x)));
    });
    // SAFETY: the lengths of the slice and of each chunk are multiples of a row's length: every element has been written.
    unsafe { written(y) }
}

impl LinearKernels for Flex {
    fn linear_fwd(x: FlexTensor, w: FlexTensor, b: Option<FlexTensor>) -> FlexTensor {
        if !all_f32(&[&x, &w]) || b.as_ref().is_some_and(|b| !all_f32(&[b])) {
            return composed_fwd::<Self>(x, w, b);
        }
        let ([x, w], b) = ([x, w].map(dense), b.map(dense));
        let ([n, width], out) = ([x.shape()[0], x.shape()[1]], w.shape()[0]);
        let threads = threads(n, out, width);
        let y = match &b {
            Some(b) => {
                let mut y = repeated(f32s(b), n);
                matmul((n, out, width), &mut y, (out, 1), true, f32s(&x), (width, 1), f32s(&w), (1, width), threads);
                y
            }
            None => product((n, out, width), (f32s(&x), (width, 1)), (f32s(&w), (1, width)), threads),
        };
        from_vec(y, Shape::from([n, out]))
    }

    fn input_bwd(w: FlexTensor, dy: FlexTensor) -> FlexTensor {
        if !all_f32(&[&w, &dy]) {
            return composed_input_bwd::<Self>(w, dy);
        }
        let [w, dy] = [w, dy].map(dense);
        let (n, [out, width]) = (dy.shape()[0], [w.shape()[0], w.shape()[1]]);
        let dx = product((n, width, out), (f32s(&dy), (out, 1)), (f32s(&w), (width, 1)), threads(n, out, width));
        from_vec(dx, Shape::from([n, width]))
    }

    fn weight_bwd(x: FlexTensor, dy: FlexTensor) -> FlexTensor {
        if !all_f32(&[&x, &dy]) {
            return composed_weight_bwd::<Self>(x, dy);
        }
        let [x, dy] = [x, dy].map(dense);
        let ([n, width], out) = ([x.shape()[0], x.shape()[1]], dy.shape()[1]);
        let dw = product((out, width, n), (f32s(&dy), (1, out)), (f32s(&x), (width, 1)), threads(n, out, width));
        from_vec(dw, Shape::from([out, width]))
    }

    fn bias_bwd(dy: FlexTensor) -> FlexTensor {
        if !all_f32(&[&dy]) {
            return composed_bias_bwd::<Self>(dy);
        }
        let (out, dy) = (dy.shape()[1], dense(dy));
        // Tasks have a fixed size and their results are summed in order, so the result does not depend on the thread count.
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

#[backend_extension(Flex, Cube: cfg(feature = "gpu"), Autodiff)]
pub(crate) trait LinearOp: Backend {
    fn linear(x: FloatTensor<Self>, w: FloatTensor<Self>) -> FloatTensor<Self>;
    fn linear_bias(x: FloatTensor<Self>, w: FloatTensor<Self>, b: FloatTensor<Self>) -> FloatTensor<Self>;
    fn linear_frozen(x: FloatTensor<Self>, w: FloatTensor<Self>) -> FloatTensor<Self>;
    fn linear_bias_frozen(x: FloatTensor<Self>, w: FloatTensor<Self>, b: FloatTensor<Self>) -> FloatTensor<Self>;
    fn linear_cached(x: FloatTensor<Self>, w: FloatTensor<Self>, cached: FloatTensor<Self>) -> FloatTensor<Self>;
    fn linear_bias_cached(
        x: FloatTensor<Self>,
        w: FloatTensor<Self>,
        cached: FloatTensor<Self>,
        b: FloatTensor<Self>,
    ) -> FloatTensor<Self>;
}
super::route::route!(LinearOp, LinearKernels {
    fn linear(x: FloatTensor<Self>, w: FloatTensor<Self>) = without_bias;
    fn linear_bias(x: FloatTensor<Self>, w: FloatTensor<Self>, b: FloatTensor<Self>) = with_bias;
    fn linear_frozen(x: FloatTensor<Self>, w: FloatTensor<Self>) = without_bias;
    fn linear_bias_frozen(x: FloatTensor<Self>, w: FloatTensor<Self>, b: FloatTensor<Self>) = with_bias;
    fn linear_cached(x: FloatTensor<Self>, w: FloatTensor<Self>, cached: FloatTensor<Self>) = by_cached;
    fn linear_bias_cached(x: FloatTensor<Self>, w: FloatTensor<Self>, cached: FloatTensor<Self>, b: FloatTensor<Self>) = by_cached_with_bias;
});

impl<B: LinearKernels, C: CheckpointStrategy> LinearOp for Autodiff<B, C> {
    fn linear(x: FloatTensor<Self>, w: FloatTensor<Self>) -> FloatTensor<Self> {
        let backward = |[x, w]: [FloatTensor<B>; 2], _, dy: FloatTensor<B>| [B::input_bwd(w, dy.clone()), B::weight_bwd(x, dy)];
        simple::<B, C, _, 2, 2>([x, w], (), |[x, w], _| B::without_bias(x, w), backward)
    }

    fn linear_bias(x: FloatTensor<Self>, w: FloatTensor<Self>, b: FloatTensor<Self>) -> FloatTensor<Self> {
        simple::<B, C, _, 3, 2>(
            [x, w, b],
            (),
            |[x, w, b], _| B::with_bias(x, w, b),
            |[x, w], _, dy| [B::input_bwd(w, dy.clone()), B::weight_bwd(x, dy.clone()), B::bias_bwd(dy)],
        )
    }

    fn linear_frozen(x: FloatTensor<Self>, w: FloatTensor<Self>) -> FloatTensor<Self> {
        let w = w.into_primitive();
        simple::<B, C, _, 1, 0>([x], w, |[x], w| B::without_bias(x, w.clone()), |[], w, dy| [B::input_bwd(w, dy)])
    }

    fn linear_bias_frozen(x: FloatTensor<Self>, w: FloatTensor<Self>, b: FloatTensor<Self>) -> FloatTensor<Self> {
        simple::<B, C, _, 1, 0>(
            [x],
            (w.into_primitive(), b.into_primitive()),
            |[x], (w, b)| B::with_bias(x, w.clone(), b.clone()),
            |[], (w, _), dy| [B::input_bwd(w, dy)],
        )
    }

    fn linear_cached(x: FloatTensor<Self>, w: FloatTensor<Self>, cached: FloatTensor<Self>) -> FloatTensor<Self> {
        let state = (cached.into_primitive(), w.dtype());
        simple::<B, C, _, 2, 1>(
            [x, w],
            state,
            |[x, _], (cached, _)| B::without_bias(x, cached.clone()),
            |[x], (cached, dtype), dy| [B::input_bwd(cached, dy.clone()), B::float_cast(B::weight_bwd(x, dy), dtype.into())],
        )
    }

    fn linear_bias_cached(
        x: FloatTensor<Self>,
        w: FloatTensor<Self>,
        cached: FloatTensor<Self>,
        b: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let state = (cached.into_primitive(), w.dtype());
        simple::<B, C, _, 3, 1>(
            [x, w, b],
            state,
            |[x, _, b], (cached, _)| B::with_bias(x, cached.clone(), b),
            |[x], (cached, dtype), dy| {
                let dw = B::float_cast(B::weight_bwd(x, dy.clone()), dtype.into());
                [B::input_bwd(cached, dy.clone()), dw, B::bias_bwd(dy)]
            },
        )
    }
}

/// Computes `x [n, in], weight [out, in], bias [out] -> [n, out]`.
///
/// # Panics
/// If the inner sizes differ.
pub fn linear(x: Tensor<2>, weight: Tensor<2>, bias: Option<Tensor<1>>) -> Tensor<2> {
    check(&x, &weight);
    let (x, w) = (x.into_dispatch(), weight.into_dispatch());
    Tensor::from_dispatch(match bias {
        Some(b) => Dispatch::linear_bias(x, w, b.into_dispatch()),
        None => Dispatch::linear(x, w),
    })
}

/// Computes [`linear`] without gradients of weight and bias: the backward pass skips them, and the input is not kept.
///
/// # Panics
/// If the inner sizes differ.
pub(crate) fn linear_frozen(x: Tensor<2>, weight: Tensor<2>, bias: Option<Tensor<1>>) -> Tensor<2> {
    check(&x, &weight);
    let (x, w) = (x.into_dispatch(), weight.into_dispatch());
    Tensor::from_dispatch(match bias {
        Some(b) => Dispatch::linear_bias_frozen(x, w, b.into_dispatch()),
        None => Dispatch::linear_frozen(x, w),
    })
}

/// Computes [`linear`] with `cached`, a copy of the weight [out, in] in the dtype of x. The gradient goes to the weight, in the
/// weight's dtype, not to the copy.
///
/// # Panics
/// If the inner sizes differ.
pub(crate) fn linear_cached(x: Tensor<2>, weight: Tensor<2>, cached: Tensor<2>, bias: Option<Tensor<1>>) -> Tensor<2> {
    check(&x, &cached);
    let (x, w, cached) = (x.into_dispatch(), weight.into_dispatch(), cached.into_dispatch());
    Tensor::from_dispatch(match bias {
        Some(b) => Dispatch::linear_bias_cached(x, w, cached, b.into_dispatch()),
        None => Dispatch::linear_cached(x, w, cached),
    })
}

fn check(x: &Tensor<2>, weight: &Tensor<2>) {
    assert_eq!(x.dims()[1], weight.dims()[1], "{:?} by the transpose of {:?}", x.dims(), weight.dims());
}
