//! Rotary position embedding in Hugging Face's rotate-half form (Su et al. 2021, <https://arxiv.org/abs/2104.09864>): (x₁, x₂) →
//! (x₁·cos − x₂·sin, x₂·cos + x₁·sin) on the two halves of the rotated dimensions. In GPT-NeoX only the first dimensions of each
//! head rotate; the others are unchanged. The gradient is the inverse rotation.

use burn::backend::{
    Autodiff, Backend, Dispatch, Flex, TensorMetadata, autodiff::checkpoint::strategy::CheckpointStrategy, backend_extension,
    flex::FlexTensor, tensor::FloatTensor,
};
use burn::tensor::{Shape, Slice, Tensor};
use rayon::prelude::*;

use super::autodiff::simple;
use super::{flex::*, simd};

pub(crate) trait RopeKernels: Backend {
    /// x [rows, heads, d], cos and sin [rows, rotated / 2]
    fn rope_fwd(x: FloatTensor<Self>, cos: FloatTensor<Self>, sin: FloatTensor<Self>, inverse: bool) -> FloatTensor<Self> {
        composed::<Self>(x, cos, sin, inverse)
    }
    fn rope_forward(x: FloatTensor<Self>, cos: FloatTensor<Self>, sin: FloatTensor<Self>) -> FloatTensor<Self> {
        Self::rope_fwd(x, cos, sin, false)
    }
}

fn composed<B: Backend>(x: FloatTensor<B>, cos: FloatTensor<B>, sin: FloatTensor<B>, inverse: bool) -> FloatTensor<B> {
    let ([rows, heads, d], half) = ([x.shape()[0], x.shape()[1], x.shape()[2]], cos.shape()[1]);
    let part = |from: usize, to: usize| {
        let r = |a: usize, b: usize| Slice::new(a as isize, Some(b as isize), 1);
        B::float_slice(x.clone(), &[r(0, rows), r(0, heads), r(from, to)])
    };
    let per_head = |t: FloatTensor<B>| B::float_reshape(t, Shape::from([rows, 1, half]));
    let (x1, x2, cos, sin) = (part(0, half), part(half, 2 * half), per_head(cos), per_head(sin));
    let sin = if inverse { B::float_neg(sin) } else { sin };
    let mul = |a: &FloatTensor<B>, b: &FloatTensor<B>| B::float_mul(a.clone(), b.clone());
    let y1 = B::float_sub(mul(&x1, &cos), mul(&x2, &sin));
    let mut parts = vec![y1, B::float_add(mul(&x2, &cos), mul(&x1, &sin))];
    if 2 * half < d {
        parts.push(part(2 * half, d));
    }
    B::float_cat(parts, 2)
}

impl RopeKernels for Flex {
    fn rope_fwd(x: FlexTensor, cos: FlexTensor, sin: FlexTensor, inverse: bool) -> FlexTensor {
        if !all_f32(&[&x, &cos, &sin]) {
            return composed::<Self>(x, cos, sin, inverse);
        }
        let (x, cos, sin) = (dense(x), dense(cos), dense(sin));
        let (xs, cs, ss, shape, half) = (f32s(&x), f32s(&cos), f32s(&sin), x.shape(), cos.shape()[1]);
        let (width, d) = (shape[1] * shape[2], shape[2]);
        assert_eq!(xs.len(), shape[0] * width);
        let mut y = uninit(xs.len());
        let sign = if inverse { -1.0 } else { 1.0 };
        let rows = (GRAIN / width).max(1);
        y.par_chunks_mut(rows * width).zip(xs.par_chunks(rows * width)).enumerate().for_each(|(task, (y, x))| {
            for (i, (y, x)) in y.chunks_exact_mut(width).zip(x.chunks_exact(width)).enumerate() {
                let angles = (task * rows + i) * half..(task * rows + i + 1) * half;
                for (y, x) in y.chunks_exact_mut(d).zip(x.chunks_exact(d)) {
                    simd::rope_row(x, &cs[angles.clone()], &ss[angles.clone()], sign, y);
                }
            }
        });
        // SAFETY: `rope_row` has written every head of every row.
        from_vec(unsafe { written(y) }, shape)
    }
}

#[backend_extension(Flex, Cube: cfg(feature = "gpu"), Autodiff)]
pub(crate) trait RopeOp: Backend {
    fn rope(x: FloatTensor<Self>, cos: FloatTensor<Self>, sin: FloatTensor<Self>) -> FloatTensor<Self>;
}
super::route::route!(RopeOp, RopeKernels {
    fn rope(x: FloatTensor<Self>, cos: FloatTensor<Self>, sin: FloatTensor<Self>) = rope_forward;
});

impl<B: RopeKernels, C: CheckpointStrategy> RopeOp for Autodiff<B, C> {
    fn rope(x: FloatTensor<Self>, cos: FloatTensor<Self>, sin: FloatTensor<Self>) -> FloatTensor<Self> {
        let angles = (cos.into_primitive(), sin.into_primitive());
        simple::<B, C, _, 1, 0>(
            [x],
            angles,
            |[x], (cos, sin)| B::rope_forward(x, cos.clone(), sin.clone()),
            |[], (cos, sin), dy| [B::rope_fwd(dy, cos, sin, true)],
        )
    }
}

/// Rotates x [rows, heads, d] by the cos and sin [rows, rotated / 2] of each row's position, with rotated ≤ d. cos and sin get no
/// gradient.
pub fn rope(x: Tensor<3>, cos: Tensor<2>, sin: Tensor<2>) -> Tensor<3> {
    let ([rows, _, d], [of, half]) = (x.dims(), cos.dims());
    assert!(rows == of && 2 * half <= d && cos.dims() == sin.dims(), "{:?} rotated by {:?}", x.dims(), cos.dims());
    Tensor::from_dispatch(Dispatch::rope(x.into_dispatch(), cos.into_dispatch(), sin.into_dispatch()))
}
