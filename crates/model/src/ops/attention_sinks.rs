//! Attention with sinks (gpt-oss): the softmax of each head has one more term exp(sink), which no value belongs to.
//!
//! With L the log-sum-exp of the scores and L' = log(e^L + e^sink), the output is that of ordinary attention times e^(L − L').
//! The backward pass of ordinary attention with L' in place of L gives the gradients of q, k and v. The gradient of a sink is
//! −Σ e^(sink − L') · (out · d out) over the rows.

use std::sync::Arc;

use burn::backend::{
    Autodiff, Backend, Dispatch, Flex, TensorMetadata, autodiff::checkpoint::strategy::CheckpointStrategy, backend_extension,
    tensor::FloatTensor,
};
use burn::tensor::{Shape, Tensor};

use super::attention::AttentionKernels;
use super::autodiff::{step, wide};
use super::packed::{AttentionScoring, Packed, Pattern};

pub(crate) trait SinkKernels: AttentionKernels {
    fn sinks_out(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        sinks: FloatTensor<Self>,
        pattern: Pattern,
    ) -> FloatTensor<Self> {
        forward::<Self>([q, k, v], sinks, &pattern).0
    }
}

impl SinkKernels for Flex {}
#[cfg(feature = "gpu")]
impl SinkKernels for burn::backend::Cube {}

/// Returns the output and L' [rows, heads].
fn forward<B: AttentionKernels>(
    qkv: [FloatTensor<B>; 3],
    sinks: FloatTensor<B>,
    pattern: &Pattern,
) -> (FloatTensor<B>, FloatTensor<B>) {
    let (out, lse) = B::attention_fwd(qkv, pattern);
    let (dtype, [rows, heads]) = (out.dtype(), [lse.shape()[0], lse.shape()[1]]);
    let sinks = B::float_expand(B::float_reshape(sinks, Shape::from([1, heads])), Shape::from([rows, heads]));
    // L' = L + log(1 + e^(sink − L)), by the larger of the two.
    let difference = B::float_sub(sinks, lse.clone());
    let larger = B::relu(difference.clone());
    let rest = B::float_exp(B::float_neg(B::float_abs(difference)));
    let total = B::float_add(lse.clone(), B::float_add(larger, B::float_log1p(rest)));
    let share = B::float_reshape(B::float_exp(B::float_sub(lse, total.clone())), Shape::from([rows, heads, 1]));
    (B::float_cast(B::float_mul(wide::<B>(out), share), dtype.into()), total)
}

fn backward<B: AttentionKernels>(
    qkv: [FloatTensor<B>; 3],
    sinks: FloatTensor<B>,
    (out, total, pattern): (FloatTensor<B>, FloatTensor<B>, Pattern),
    dy: FloatTensor<B>,
) -> [FloatTensor<B>; 4] {
    let [rows, heads] = [total.shape()[0], total.shape()[1]];
    let dots = B::float_sum_dim(B::float_mul(wide::<B>(out.clone()), wide::<B>(dy.clone())), 2);
    let share = B::float_expand(B::float_reshape(sinks, Shape::from([1, heads])), Shape::from([rows, heads]));
    let share = B::float_exp(B::float_sub(share, total.clone()));
    let d_sinks = B::float_sum_dim(B::float_mul(share, B::float_reshape(dots, Shape::from([rows, heads]))), 0);
    let d_sinks = B::float_neg(B::float_reshape(d_sinks, Shape::from([heads])));
    let [q, k, v] = B::attention_bwd(qkv, out, total, dy, &pattern);
    [q, k, v, d_sinks]
}

#[backend_extension(Flex, Cube: cfg(feature = "gpu"), Autodiff)]
pub(crate) trait SinkOp: Backend {
    fn attention_sinks(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        sinks: FloatTensor<Self>,
        pattern: Pattern,
    ) -> FloatTensor<Self>;
}
super::route::route!(SinkOp, SinkKernels {
    fn attention_sinks(q: FloatTensor<Self>, k: FloatTensor<Self>, v: FloatTensor<Self>, sinks: FloatTensor<Self>, pattern: Pattern) = sinks_out;
});

impl<B: SinkKernels, C: CheckpointStrategy> SinkOp for Autodiff<B, C> {
    fn attention_sinks(
        q: FloatTensor<Self>,
        k: FloatTensor<Self>,
        v: FloatTensor<Self>,
        sinks: FloatTensor<Self>,
        pattern: Pattern,
    ) -> FloatTensor<Self> {
        step::<B, C, _, 4, 4>(
            [q, k, v, sinks],
            |[q, k, v, sinks]| B::sinks_out(q, k, v, sinks, pattern.clone()),
            |[q, k, v, sinks]| {
                let (out, total) = forward::<B>([q, k, v], sinks, &pattern);
                (out.clone(), (out, total, pattern.clone()))
            },
            |[q, k, v, sinks], state, dy| backward::<B>([q, k, v], sinks, state, dy),
        )
    }
}

/// Computes [`attention`](super::attention()) with one sink per head, `[heads]` in f32.
pub(crate) fn attention_with_sinks(
    [q, k, v]: [Tensor<3>; 3],
    sinks: Tensor<1>,
    packed: Arc<Packed>,
    scoring: AttentionScoring,
) -> Tensor<3> {
    assert_eq!((q.dims()[0], q.dims()[1]), (packed.rows(), sinks.dims()[0]), "rows and heads of q");
    let (q, k, v) = (q.into_dispatch(), k.into_dispatch(), v.into_dispatch());
    Tensor::from_dispatch(Dispatch::attention_sinks(q, k, v, sinks.into_dispatch(), Pattern { packed, scoring }))
}
