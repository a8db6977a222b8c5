//! Causal attention of packed sequences with grouped KV heads: softmax(score(q·kᵀ))·v. The layout is the layout of the
//! projections' output, [rows, heads, d], without transposes or repeated heads. The CPU kernels are in `attention_flex.rs`, the
//! bodies composed of ordinary tensor operations in `attention_composed.rs`.

use std::sync::Arc;

use burn::backend::{
    Autodiff, Backend, Dispatch, Flex, TensorMetadata, autodiff::checkpoint::strategy::CheckpointStrategy, backend_extension,
    flex::FlexTensor, tensor::FloatTensor,
};
use burn::tensor::{Shape, Tensor};

use super::attention_composed as composed;
pub use super::attention_composed::QUERIES;
use super::attention_flex::{self, Dims};
use super::attention_scores::ScoreKernels;
use super::autodiff::step;
use super::flex::*;
use super::packed::{AttentionScoring, Packed, Pattern};

pub(crate) trait AttentionKernels: ScoreKernels {
    /// Returns the output and the log-sum-exp of the scores [rows, heads].
    fn attention_fwd(qkv: [FloatTensor<Self>; 3], pattern: &Pattern) -> (FloatTensor<Self>, FloatTensor<Self>) {
        composed::forward::<Self>(qkv, pattern)
    }
    fn attention_out(q: FloatTensor<Self>, k: FloatTensor<Self>, v: FloatTensor<Self>, pattern: Pattern) -> FloatTensor<Self> {
        composed::output::<Self>([q, k, v], &pattern)
    }
    /// Returns the gradients of q, k and v.
    fn attention_bwd(
        qkv: [FloatTensor<Self>; 3],
        out: FloatTensor<Self>,
        lse: FloatTensor<Self>,
        dy: FloatTensor<Self>,
        pattern: &Pattern,
    ) -> [FloatTensor<Self>; 3] {
        composed::backward::<Self>(qkv, out, lse, dy, pattern)
    }
}

fn dims(q: &FlexTensor, k: &FlexTensor) -> Dims {
    Dims { heads: q.shape()[1], kv_heads: k.shape()[1], d: q.shape()[2] }
}

impl AttentionKernels for Flex {
    fn attention_fwd(qkv: [FlexTensor; 3], pattern: &Pattern) -> (FlexTensor, FlexTensor) {
        if !all_f32(&qkv.each_ref()) {
            return composed::forward::<Self>(qkv, pattern);
        }
        let qkv = qkv.map(dense);
        let (shape, dims) = (qkv[0].shape(), dims(&qkv[0], &qkv[1]));
        let (out, lse) = attention_flex::forward(qkv.each_ref().map(f32s), pattern, dims);
        (from_vec(out, shape.clone()), from_vec(lse, Shape::from([shape[0], shape[1]])))
    }

    fn attention_out(q: FlexTensor, k: FlexTensor, v: FlexTensor, pattern: Pattern) -> FlexTensor {
        match all_f32(&[&q, &k, &v]) {
            true => Self::attention_fwd([q, k, v], &pattern).0,
            false => composed::output::<Self>([q, k, v], &pattern),
        }
    }

    fn attention_bwd(
        qkv: [FlexTensor; 3],
        out: FlexTensor,
        lse: FlexTensor,
        dy: FlexTensor,
        pattern: &Pattern,
    ) -> [FlexTensor; 3] {
        if !all_f32(&[&qkv[0], &qkv[1], &qkv[2], &dy]) {
            return composed::backward::<Self>(qkv, out, lse, dy, pattern);
        }
        let (qkv, dy) = (qkv.map(dense), dense(dy));
        let dims = dims(&qkv[0], &qkv[1]);
        let slices = qkv.each_ref().map(f32s);
        let [dq, dk, dv] = attention_flex::backward(slices, f32s(&out), f32s(&lse), f32s(&dy), pattern, dims);
        let [q, k, v] = qkv.map(|x| x.shape());
        [from_vec(dq, q), from_vec(dk, k), from_vec(dv, v)]
    }
}

#[backend_extension(Flex, Cube: cfg(feature = "gpu"), Autodiff)]
pub(crate) trait AttentionOp: Backend {
    fn attention(q: FloatTensor<Self>, k: FloatTensor<Self>, v: FloatTensor<Self>, pattern: Pattern) -> FloatTensor<Self>;
}
super::route::route!(AttentionOp, AttentionKernels {
    fn attention(q: FloatTensor<Self>, k: FloatTensor<Self>, v: FloatTensor<Self>, pattern: Pattern) = attention_out;
});

impl<B: AttentionKernels, C: CheckpointStrategy> AttentionOp for Autodiff<B, C> {
    fn attention(q: FloatTensor<Self>, k: FloatTensor<Self>, v: FloatTensor<Self>, pattern: Pattern) -> FloatTensor<Self> {
        step::<B, C, _, 3, 3>(
            [q, k, v],
            |[q, k, v]| B::attention_out(q, k, v, pattern.clone()),
            |qkv| {
                let (out, lse) = B::attention_fwd(qkv, &pattern);
                (out.clone(), (out, lse, pattern.clone()))
            },
            |qkv, (out, lse, pattern), dy| B::attention_bwd(qkv, out, lse, dy, &pattern),
        )
    }
}

/// Computes attention: q [rows, heads, d], k and v [rows, kv heads, d] -> [rows, heads, d]. The number of heads is a multiple of
/// kv heads. A query sees its segment's stem and the segment's rows up to itself, within the window.
///
/// # Panics
/// If the tensors do not have the rows of `packed`.
pub fn attention(q: Tensor<3>, k: Tensor<3>, v: Tensor<3>, packed: Arc<Packed>, scoring: AttentionScoring) -> Tensor<3> {
    let ([rows, heads, d], [_, kv_heads, _]) = (q.dims(), k.dims());
    assert_eq!(rows, packed.rows(), "rows of q");
    assert_eq!((k.dims(), v.dims()), ([rows, kv_heads, d], [rows, kv_heads, d]), "shapes of k and v");
    assert!(heads.is_multiple_of(kv_heads), "{heads} heads over {kv_heads} of keys");
    let (q, k, v) = (q.into_dispatch(), k.into_dispatch(), v.into_dispatch());
    Tensor::from_dispatch(Dispatch::attention(q, k, v, Pattern { packed, scoring }))
}
