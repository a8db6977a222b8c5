//! The operations of a mixture of experts, on rows sorted by expert ([`Groups`]): gather rows to their places, multiply each
//! expert's rows by its matrix, and add up the weighted results of each row. The CPU kernels are in `grouped_flex.rs`.

use std::sync::Arc;

use burn::backend::{
    Autodiff, Backend, Dispatch, Flex, TensorMetadata, autodiff::checkpoint::strategy::CheckpointStrategy, backend_extension,
    flex::FlexTensor, tensor::FloatTensor,
};
use burn::tensor::{Shape, Slice, Tensor};

use super::attention_blocks::int;
use super::autodiff::{simple, wide};
use super::flex::*;
use super::grouped_flex;
use super::groups::Groups;

type Shared = Arc<Groups>;

pub(crate) trait GroupedKernels: Backend {
    /// `x [n, h] -> [places, h]`
    fn gather_fwd(x: FloatTensor<Self>, groups: Shared) -> FloatTensor<Self> {
        composed_gather::<Self>(x, &groups)
    }
    /// Returns the gradient of x.
    fn gather_bwd(dy: FloatTensor<Self>, groups: Shared) -> FloatTensor<Self> {
        composed_gather_bwd::<Self>(dy, &groups)
    }
    /// `x [places, in], w [experts, out, in] -> [places, out]`
    fn matmul_fwd(x: FloatTensor<Self>, w: FloatTensor<Self>, groups: Shared) -> FloatTensor<Self> {
        composed_matmul::<Self>(x, w, &groups, true)
    }
    fn matmul_by_cached(
        x: FloatTensor<Self>,
        _: FloatTensor<Self>,
        cached: FloatTensor<Self>,
        groups: Shared,
    ) -> FloatTensor<Self> {
        Self::matmul_fwd(x, cached, groups)
    }
    /// Returns the gradient of x.
    fn matmul_input_bwd(w: FloatTensor<Self>, dy: FloatTensor<Self>, groups: Shared) -> FloatTensor<Self> {
        composed_matmul::<Self>(dy, w, &groups, false)
    }
    /// Returns the gradient of w, which has `experts` matrices.
    fn matmul_weight_bwd(x: FloatTensor<Self>, dy: FloatTensor<Self>, groups: Shared) -> FloatTensor<Self> {
        composed_weight_bwd::<Self>(x, dy, &groups)
    }
    /// `y [places, h], weights [n, k] -> [n, h]`
    fn combine_fwd(y: FloatTensor<Self>, weights: FloatTensor<Self>, groups: Shared) -> FloatTensor<Self> {
        composed_combine::<Self>(y, weights, &groups)
    }
    /// Returns the gradients of y and weights.
    fn combine_bwd(
        y: FloatTensor<Self>,
        weights: FloatTensor<Self>,
        d: FloatTensor<Self>,
        groups: &Groups,
    ) -> [FloatTensor<Self>; 2] {
        composed_combine_bwd::<Self>(y, weights, d, groups)
    }
}

fn select<B: Backend>(x: FloatTensor<B>, rows: impl Iterator<Item = usize>) -> FloatTensor<B> {
    let rows = int::<B>(rows.map(|row| row as i64), &x.device());
    B::float_select(x, 0, rows)
}

fn composed_gather<B: Backend>(x: FloatTensor<B>, groups: &Groups) -> FloatTensor<B> {
    select::<B>(x, groups.slots.iter().map(|slot| slot / groups.k))
}

/// The rows at the places of each row's experts, in f32: [places, h] -> [n, k, h].
fn by_row<B: Backend>(y: FloatTensor<B>, groups: &Groups) -> FloatTensor<B> {
    let width = y.shape()[1];
    let y = select::<B>(y, groups.places.iter().copied());
    B::float_reshape(wide::<B>(y), Shape::from([groups.rows(), groups.k, width]))
}

fn composed_gather_bwd<B: Backend>(dy: FloatTensor<B>, groups: &Groups) -> FloatTensor<B> {
    let (dtype, width) = (dy.dtype(), dy.shape()[1]);
    let sum = B::float_sum_dim(by_row::<B>(dy, groups), 1);
    B::float_cast(B::float_reshape(sum, Shape::from([groups.rows(), width])), dtype.into())
}

/// Multiplies the rows of each expert by its matrix [out, in]: by the transpose if `transposed`.
fn composed_matmul<B: Backend>(x: FloatTensor<B>, w: FloatTensor<B>, groups: &Groups, transposed: bool) -> FloatTensor<B> {
    let (columns, shape) = (x.shape()[1], w.shape());
    let parts = groups.used().map(|(expert, places)| {
        let rows = B::float_slice(x.clone(), &[Slice::from(places), Slice::from(0..columns)]);
        let matrix = [Slice::from(expert..expert + 1), Slice::from(0..shape[1]), Slice::from(0..shape[2])];
        let matrix = B::float_reshape(B::float_slice(w.clone(), &matrix), Shape::from([shape[1], shape[2]]));
        B::float_matmul(rows, if transposed { B::float_transpose(matrix) } else { matrix })
    });
    B::float_cat(parts.collect(), 0)
}

fn composed_weight_bwd<B: Backend>(x: FloatTensor<B>, dy: FloatTensor<B>, groups: &Groups) -> FloatTensor<B> {
    let (columns, out) = (x.shape()[1], dy.shape()[1]);
    let mut used = groups.used().peekable();
    let matrices = (0..groups.counts().count()).map(|expert| {
        let shape = Shape::from([1, out, columns]);
        let Some((_, places)) = used.next_if(|(next, _)| *next == expert) else {
            return B::float_zeros(shape, &x.device(), x.dtype().into());
        };
        let rows =
            |x: &FloatTensor<B>, width: usize| B::float_slice(x.clone(), &[Slice::from(places.clone()), Slice::from(0..width)]);
        B::float_reshape(B::float_matmul(B::float_transpose(rows(&dy, out)), rows(&x, columns)), shape)
    });
    B::float_cat(matrices.collect(), 0)
}

fn composed_combine<B: Backend>(y: FloatTensor<B>, weights: FloatTensor<B>, groups: &Groups) -> FloatTensor<B> {
    let (dtype, width, [n, k]) = (y.dtype(), y.shape()[1], [groups.rows(), groups.k]);
    let weighted = B::float_mul(by_row::<B>(y, groups), B::float_reshape(wide::<B>(weights), Shape::from([n, k, 1])));
    B::float_cast(B::float_reshape(B::float_sum_dim(weighted, 1), Shape::from([n, width])), dtype.into())
}

fn composed_combine_bwd<B: Backend>(
    y: FloatTensor<B>,
    weights: FloatTensor<B>,
    d: FloatTensor<B>,
    groups: &Groups,
) -> [FloatTensor<B>; 2] {
    let ([n, k], width, dtypes) = ([groups.rows(), groups.k], y.shape()[1], [y.dtype(), weights.dtype()]);
    let d = B::float_reshape(wide::<B>(d), Shape::from([n, 1, width]));
    let d_weights = B::float_sum_dim(B::float_mul(by_row::<B>(y, groups), d.clone()), 2);
    let d_y = B::float_mul(d, B::float_reshape(wide::<B>(weights), Shape::from([n, k, 1])));
    let d_y = B::float_reshape(d_y, Shape::from([n * k, width]));
    let d_y = select::<B>(d_y, groups.slots.iter().copied());
    [B::float_cast(d_y, dtypes[0].into()), B::float_cast(B::float_reshape(d_weights, Shape::from([n, k])), dtypes[1].into())]
}

impl GroupedKernels for Flex {
    fn gather_fwd(x: FlexTensor, groups: Shared) -> FlexTensor {
        if !all_f32(&[&x]) {
            return composed_gather::<Self>(x, &groups);
        }
        let (width, x) = (x.shape()[1], dense(x));
        from_vec(grouped_flex::gather(f32s(&x), width, &groups), Shape::from([groups.slots.len(), width]))
    }

    fn gather_bwd(dy: FlexTensor, groups: Shared) -> FlexTensor {
        if !all_f32(&[&dy]) {
            return composed_gather_bwd::<Self>(dy, &groups);
        }
        let (width, dy) = (dy.shape()[1], dense(dy));
        from_vec(grouped_flex::combine(f32s(&dy), width, None, &groups), Shape::from([groups.rows(), width]))
    }

    fn matmul_fwd(x: FlexTensor, w: FlexTensor, groups: Shared) -> FlexTensor {
        if !all_f32(&[&x, &w]) {
            return composed_matmul::<Self>(x, w, &groups, true);
        }
        let [x, w] = [x, w].map(dense);
        let [_, out, width] = w.shape().dims();
        let y = grouped_flex::by_transposes(f32s(&x), f32s(&w), [out, width], &groups);
        from_vec(y, Shape::from([groups.slots.len(), out]))
    }

    fn matmul_input_bwd(w: FlexTensor, dy: FlexTensor, groups: Shared) -> FlexTensor {
        if !all_f32(&[&w, &dy]) {
            return composed_matmul::<Self>(dy, w, &groups, false);
        }
        let [w, dy] = [w, dy].map(dense);
        let [_, out, width] = w.shape().dims();
        let dx = grouped_flex::by_matrices(f32s(&dy), f32s(&w), [out, width], &groups);
        from_vec(dx, Shape::from([groups.slots.len(), width]))
    }

    fn matmul_weight_bwd(x: FlexTensor, dy: FlexTensor, groups: Shared) -> FlexTensor {
        if !all_f32(&[&x, &dy]) {
            return composed_weight_bwd::<Self>(x, dy, &groups);
        }
        let [x, dy] = [x, dy].map(dense);
        let ([width, out], experts) = ([x.shape()[1], dy.shape()[1]], groups.counts().count());
        let dw = grouped_flex::gradients(f32s(&x), f32s(&dy), [out, width], &groups);
        from_vec(dw, Shape::from([experts, out, width]))
    }

    fn combine_fwd(y: FlexTensor, weights: FlexTensor, groups: Shared) -> FlexTensor {
        if !all_f32(&[&y, &weights]) {
            return composed_combine::<Self>(y, weights, &groups);
        }
        let ([y, weights], width) = ([y, weights].map(dense), groups.slots.len());
        let width = f32s(&y).len() / width;
        from_vec(grouped_flex::combine(f32s(&y), width, Some(f32s(&weights)), &groups), Shape::from([groups.rows(), width]))
    }

    fn combine_bwd(y: FlexTensor, weights: FlexTensor, d: FlexTensor, groups: &Groups) -> [FlexTensor; 2] {
        if !all_f32(&[&y, &weights, &d]) {
            return composed_combine_bwd::<Self>(y, weights, d, groups);
        }
        let [y, weights, d] = [y, weights, d].map(dense);
        let (d_y, d_weights) = grouped_flex::combine_gradients(f32s(&y), f32s(&weights), f32s(&d), groups);
        [from_vec(d_y, y.shape()), from_vec(d_weights, weights.shape())]
    }
}

#[cfg(feature = "gpu")]
impl GroupedKernels for burn::backend::Cube {}

#[backend_extension(Flex, Cube: cfg(feature = "gpu"), Autodiff)]
pub(crate) trait GroupedOp: Backend {
    fn gather_groups(x: FloatTensor<Self>, groups: Shared) -> FloatTensor<Self>;
    fn grouped(x: FloatTensor<Self>, w: FloatTensor<Self>, groups: Shared) -> FloatTensor<Self>;
    fn grouped_frozen(x: FloatTensor<Self>, w: FloatTensor<Self>, groups: Shared) -> FloatTensor<Self>;
    fn grouped_cached(x: FloatTensor<Self>, w: FloatTensor<Self>, cached: FloatTensor<Self>, groups: Shared)
    -> FloatTensor<Self>;
    fn combine_groups(y: FloatTensor<Self>, weights: FloatTensor<Self>, groups: Shared) -> FloatTensor<Self>;
}
super::route::route!(GroupedOp, GroupedKernels {
    fn gather_groups(x: FloatTensor<Self>, groups: Shared) = gather_fwd;
    fn grouped(x: FloatTensor<Self>, w: FloatTensor<Self>, groups: Shared) = matmul_fwd;
    fn grouped_frozen(x: FloatTensor<Self>, w: FloatTensor<Self>, groups: Shared) = matmul_fwd;
    fn grouped_cached(x: FloatTensor<Self>, w: FloatTensor<Self>, cached: FloatTensor<Self>, groups: Shared) = matmul_by_cached;
    fn combine_groups(y: FloatTensor<Self>, weights: FloatTensor<Self>, groups: Shared) = combine_fwd;
});

impl<B: GroupedKernels, C: CheckpointStrategy> GroupedOp for Autodiff<B, C> {
    fn gather_groups(x: FloatTensor<Self>, groups: Shared) -> FloatTensor<Self> {
        let forward = |[x]: [_; 1], groups: &Shared| B::gather_fwd(x, groups.clone());
        simple::<B, C, _, 1, 0>([x], groups, forward, |[], groups, dy| [B::gather_bwd(dy, groups)])
    }

    fn grouped(x: FloatTensor<Self>, w: FloatTensor<Self>, groups: Shared) -> FloatTensor<Self> {
        let forward = |[x, w]: [_; 2], groups: &Shared| B::matmul_fwd(x, w, groups.clone());
        simple::<B, C, _, 2, 2>([x, w], groups, forward, |[x, w], groups, dy| {
            [B::matmul_input_bwd(w, dy.clone(), groups.clone()), B::matmul_weight_bwd(x, dy, groups)]
        })
    }

    fn grouped_frozen(x: FloatTensor<Self>, w: FloatTensor<Self>, groups: Shared) -> FloatTensor<Self> {
        simple::<B, C, _, 1, 0>(
            [x],
            (w.into_primitive(), groups),
            |[x], (w, groups)| B::matmul_fwd(x, w.clone(), groups.clone()),
            |[], (w, groups), dy| [B::matmul_input_bwd(w, dy, groups)],
        )
    }

    fn grouped_cached(
        x: FloatTensor<Self>,
        w: FloatTensor<Self>,
        cached: FloatTensor<Self>,
        groups: Shared,
    ) -> FloatTensor<Self> {
        let state = (cached.into_primitive(), w.dtype(), groups);
        simple::<B, C, _, 2, 1>(
            [x, w],
            state,
            |[x, _], (cached, _, groups)| B::matmul_fwd(x, cached.clone(), groups.clone()),
            |[x], (cached, dtype, groups), dy| {
                let dw = B::float_cast(B::matmul_weight_bwd(x, dy.clone(), groups.clone()), dtype.into());
                [B::matmul_input_bwd(cached, dy, groups), dw]
            },
        )
    }

    fn combine_groups(y: FloatTensor<Self>, weights: FloatTensor<Self>, groups: Shared) -> FloatTensor<Self> {
        let forward = |[y, weights]: [_; 2], groups: &Shared| B::combine_fwd(y, weights, groups.clone());
        simple::<B, C, _, 2, 2>([y, weights], groups, forward, |[y, weights], groups, d| B::combine_bwd(y, weights, d, &groups))
    }
}

/// Gathers the rows x [n, h] of each expert, one expert after another -> [n · k, h].
pub(crate) fn gather_groups(x: Tensor<2>, groups: &Arc<Groups>) -> Tensor<2> {
    assert_eq!(x.dims()[0], groups.rows(), "rows of a mixture");
    Tensor::from_dispatch(Dispatch::gather_groups(x.into_dispatch(), groups.clone()))
}

/// Multiplies the gathered rows x [n · k, in] of each expert by its matrix of w [experts, out, in] -> [n · k, out].
pub(crate) fn grouped(x: Tensor<2>, w: Tensor<3>, groups: &Arc<Groups>) -> Tensor<2> {
    check(&x, &w);
    Tensor::from_dispatch(Dispatch::grouped(x.into_dispatch(), w.into_dispatch(), groups.clone()))
}

/// Computes [`grouped`] without a gradient of w.
pub(crate) fn grouped_frozen(x: Tensor<2>, w: Tensor<3>, groups: &Arc<Groups>) -> Tensor<2> {
    check(&x, &w);
    Tensor::from_dispatch(Dispatch::grouped_frozen(x.into_dispatch(), w.into_dispatch(), groups.clone()))
}

/// Computes [`grouped`] with `cached`, a copy of w in the dtype of x. The gradient goes to w, in its dtype.
pub(crate) fn grouped_cached(x: Tensor<2>, w: Tensor<3>, cached: Tensor<3>, groups: &Arc<Groups>) -> Tensor<2> {
    check(&x, &cached);
    let (x, w, cached) = (x.into_dispatch(), w.into_dispatch(), cached.into_dispatch());
    Tensor::from_dispatch(Dispatch::grouped_cached(x, w, cached, groups.clone()))
}

/// Computes [`grouped`] outside any graph. On the CPU a row of the result does not depend on the number of rows.
pub(crate) fn grouped_rows(x: Tensor<2>, w: Tensor<3>, groups: &Arc<Groups>) -> Tensor<2> {
    check(&x, &w);
    let ([places, _], [_, out, width]) = (x.dims(), w.dims());
    match (flex_f32(&x), flex_f32(&w)) {
        (Some(xs), Some(ws)) => {
            let y = grouped_flex::independent_rows(f32s(&xs), f32s(&ws), [out, width], groups);
            tensor_from_vec(y, [places, out], &x.device())
        }
        _ => grouped(x, w, groups),
    }
}

/// Adds up the results y [n · k, h] of each row's experts, with the row's `weights` [n, k] -> [n, h].
pub(crate) fn combine_groups(y: Tensor<2>, weights: Tensor<2>, groups: &Arc<Groups>) -> Tensor<2> {
    assert_eq!(weights.dims(), [groups.rows(), groups.k], "weights of a mixture");
    Tensor::from_dispatch(Dispatch::combine_groups(y.into_dispatch(), weights.into_dispatch(), groups.clone()))
}

fn check(x: &Tensor<2>, w: &Tensor<3>) {
    assert_eq!(x.dims()[1], w.dims()[2], "{:?} by the transposes of {:?}", x.dims(), w.dims());
}
