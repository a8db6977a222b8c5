//! Rotary position embedding, Hugging Face's rotate-half form (Su et al. 2021, <https://arxiv.org/abs/2104.09864>):
//! (x₁, x₂) → (x₁·cos − x₂·sin, x₂·cos + x₁·sin) on the two halves of each head. The gradient is the inverse rotation.

use burn::backend::{
    Autodiff, Backend, Dispatch, Flex, TensorMetadata,
    autodiff::{
        checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
        grads::Gradients,
        ops::{Backward, Ops, OpsKind},
    },
    backend_extension,
    flex::FlexTensor,
    tensor::FloatTensor,
};
use burn::tensor::{Shape, Slice, Tensor};
use rayon::prelude::*;

use super::{flex::*, simd};

pub trait RopeKernels: Backend {
    /// x [b, s, heads, d], cos and sin [s, d/2]
    fn rope_fwd(x: FloatTensor<Self>, cos: FloatTensor<Self>, sin: FloatTensor<Self>, inverse: bool) -> FloatTensor<Self> {
        composed::<Self>(x, cos, sin, inverse)
    }
    fn rope_forward(x: FloatTensor<Self>, cos: FloatTensor<Self>, sin: FloatTensor<Self>) -> FloatTensor<Self> {
        Self::rope_fwd(x, cos, sin, false)
    }
}

fn composed<B: Backend>(x: FloatTensor<B>, cos: FloatTensor<B>, sin: FloatTensor<B>, inverse: bool) -> FloatTensor<B> {
    let (s, half) = (x.shape(), x.shape()[3] / 2);
    let part = |x: &FloatTensor<B>, i: usize| {
        let r = |a: usize, b: usize| Slice::new(a as isize, Some(b as isize), 1);
        B::float_slice(x.clone(), &[r(0, s[0]), r(0, s[1]), r(0, s[2]), r(i * half, (i + 1) * half)])
    };
    let rows = |t: FloatTensor<B>| B::float_reshape(t, Shape::from([1, s[1], 1, half]));
    let (x1, x2, cos, sin) = (part(&x, 0), part(&x, 1), rows(cos), rows(sin));
    let sin = if inverse { B::float_neg(sin) } else { sin };
    let mul = |a: &FloatTensor<B>, b: &FloatTensor<B>| B::float_mul(a.clone(), b.clone());
    let y1 = B::float_sub(mul(&x1, &cos), mul(&x2, &sin));
    B::float_cat(vec![y1, B::float_add(mul(&x2, &cos), mul(&x1, &sin))], 3)
}

impl RopeKernels for Flex {
    fn rope_fwd(x: FlexTensor, cos: FlexTensor, sin: FlexTensor, inverse: bool) -> FlexTensor {
        if !all_f32(&[&x, &cos, &sin]) {
            return composed::<Self>(x, cos, sin, inverse);
        }
        let (x, cos, sin) = (dense(x), dense(cos), dense(sin));
        let (xs, cs, ss, shape) = (f32s(&x), f32s(&cos), f32s(&sin), x.shape());
        let (seq, row, d) = (shape[1], shape[2] * shape[3], shape[3]);
        let mut y = uninit(xs.len());
        let sign = if inverse { -1.0 } else { 1.0 };
        let rows = (GRAIN / row).max(1);
        y.par_chunks_mut(rows * row).zip(xs.par_chunks(rows * row)).enumerate().for_each(|(task, (y, x))| {
            for (i, (y, x)) in y.chunks_exact_mut(row).zip(x.chunks_exact(row)).enumerate() {
                let p = (task * rows + i) % seq;
                let r = p * d / 2..(p + 1) * d / 2;
                for (y, x) in y.chunks_exact_mut(d).zip(x.chunks_exact(d)) {
                    simd::rope_row(x, &cs[r.clone()], &ss[r.clone()], sign, y);
                }
            }
        });
        from_vec(y, shape)
    }
}

#[backend_extension(Flex, Cube: cfg(feature = "cuda"), Autodiff)]
pub trait RopeOp: Backend {
    fn rope(x: FloatTensor<Self>, cos: FloatTensor<Self>, sin: FloatTensor<Self>) -> FloatTensor<Self>;
}
super::route!(RopeOp, RopeKernels {
    fn rope(x: FloatTensor<Self>, cos: FloatTensor<Self>, sin: FloatTensor<Self>) = rope_forward;
});

impl<B: RopeKernels, C: CheckpointStrategy> RopeOp for Autodiff<B, C> {
    fn rope(x: FloatTensor<Self>, cos: FloatTensor<Self>, sin: FloatTensor<Self>) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Rope;
        impl<B: RopeKernels> Backward<B, 1> for Rope {
            type State = [FloatTensor<B>; 2];
            fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
                let ([parent], [cos, sin]) = (ops.parents, ops.state);
                let dy = grads.consume::<B>(&ops.node);
                if let Some(parent) = parent {
                    grads.register::<B>(parent.id, B::rope_fwd(dy, cos, sin, true));
                }
            }
        }
        let (cos, sin) = (cos.into_primitive(), sin.into_primitive());
        match Rope.prepare::<C>([x.node()]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish([cos.clone(), sin.clone()], B::rope_forward(x.into_primitive(), cos, sin)),
            OpsKind::UnTracked(prep) => prep.finish(B::rope_forward(x.into_primitive(), cos, sin)),
        }
    }
}

/// x [batch, seq, heads, d]; cos and sin [seq, d/2] of each position. They get no gradient.
pub fn rope(x: Tensor<4>, cos: Tensor<2>, sin: Tensor<2>) -> Tensor<4> {
    assert_eq!([x.dims()[1], x.dims()[3] / 2], cos.dims());
    Tensor::from_dispatch(Dispatch::rope(x.into_dispatch(), cos.into_dispatch(), sin.into_dispatch()))
}
