//! Causal attention with grouped key/value heads, softmax(q·kᵀ/√d)·v, in the layout the projections give:
//! [batch, seq, heads, dim], no transposes and no repeated heads. The CPU kernels are in `attention_flex.rs`.

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
use burn::tensor::{Shape, Tensor, TensorData};

use super::attention_flex::{self, Dims};
use super::flex::*;

pub trait AttentionKernels: Backend {
    /// (output, log-sum-exp of the scaled scores [b, heads, seq])
    fn attention_fwd(q: FloatTensor<Self>, k: FloatTensor<Self>, v: FloatTensor<Self>) -> (FloatTensor<Self>, FloatTensor<Self>) {
        composed_fwd::<Self>(q, k, v)
    }
    fn attention_out(q: FloatTensor<Self>, k: FloatTensor<Self>, v: FloatTensor<Self>) -> FloatTensor<Self> {
        Self::attention_fwd(q, k, v).0
    }
    /// Gradients of q, k and v
    fn attention_bwd(
        qkv: [FloatTensor<Self>; 3],
        out: FloatTensor<Self>,
        lse: FloatTensor<Self>,
        dy: FloatTensor<Self>,
    ) -> [FloatTensor<Self>; 3] {
        composed_bwd::<Self>(qkv, out, lse, dy)
    }
}

/// [b, s, heads, d] -> [b, kv heads, group · s, d]
fn split<B: Backend>(x: FloatTensor<B>, kv_heads: usize) -> FloatTensor<B> {
    let s = x.shape();
    let group = s[2] / kv_heads;
    let x = B::float_reshape(x, Shape::from([s[0], s[1], kv_heads, group, s[3]]));
    B::float_reshape(B::float_permute(x, &[0, 2, 3, 1, 4]), Shape::from([s[0], kv_heads, group * s[1], s[3]]))
}

/// The inverse of [`split`].
fn join<B: Backend>(x: FloatTensor<B>, seq: usize) -> FloatTensor<B> {
    let s = x.shape();
    let group = s[2] / seq;
    let x = B::float_reshape(x, Shape::from([s[0], s[1], group, seq, s[3]]));
    B::float_reshape(B::float_permute(x, &[0, 3, 1, 2, 4]), Shape::from([s[0], seq, s[1] * group, s[3]]))
}

struct Scored<B: Backend> {
    q: FloatTensor<B>,
    k: FloatTensor<B>,
    v: FloatTensor<B>,
    scores: FloatTensor<B>,
}

fn scored<B: Backend>(q: FloatTensor<B>, k: FloatTensor<B>, v: FloatTensor<B>) -> Scored<B> {
    let (qs, ks) = (q.shape(), k.shape());
    let (sq, sk, kv_heads, group) = (qs[1], ks[1], ks[2], qs[2] / ks[2]);
    let bias: Vec<f32> = (0..group * sq * sk).map(|i| if i % sk > sk - sq + i / sk % sq { -1e30 } else { 0.0 }).collect();
    let bias = B::float_from_data(TensorData::new(bias, [1, 1, group * sq, sk]), &q.device());
    let bias = B::float_cast(bias, q.dtype().into());
    let (q, k, v) = (split::<B>(q, kv_heads), split::<B>(k, kv_heads), split::<B>(v, kv_heads));
    let scores = B::float_matmul(q.clone(), B::float_transpose(k.clone()));
    let scores = B::float_mul_scalar(scores, (1.0 / (qs[3] as f64).sqrt()).into());
    Scored { scores: B::float_add(scores, bias), q, k, v }
}

fn composed_fwd<B: Backend>(q: FloatTensor<B>, k: FloatTensor<B>, v: FloatTensor<B>) -> (FloatTensor<B>, FloatTensor<B>) {
    let [b, sq, heads] = [q.shape()[0], q.shape()[1], q.shape()[2]];
    let x = scored::<B>(q, k, v);
    let max = B::float_max_dim(x.scores.clone(), 3);
    let e = B::float_exp(B::float_sub(x.scores, max.clone()));
    let sum = B::float_sum_dim(e.clone(), 3);
    let out = B::float_matmul(B::float_div(e, sum.clone()), x.v);
    let lse = B::float_reshape(B::float_add(max, B::float_log(sum)), Shape::from([b, heads, sq]));
    (join::<B>(out, sq), lse)
}

fn composed_bwd<B: Backend>(
    [q, k, v]: [FloatTensor<B>; 3],
    out: FloatTensor<B>,
    lse: FloatTensor<B>,
    dy: FloatTensor<B>,
) -> [FloatTensor<B>; 3] {
    let ([b, sq, heads, d], [sk, kv_heads]) =
        ([q.shape()[0], q.shape()[1], q.shape()[2], q.shape()[3]], [k.shape()[1], k.shape()[2]]);
    let x = scored::<B>(q, k, v);
    let lse = B::float_reshape(lse, Shape::from([b, kv_heads, heads / kv_heads * sq, 1]));
    let p = B::float_exp(B::float_sub(x.scores, lse));
    let (out, dy) = (split::<B>(out, kv_heads), split::<B>(dy, kv_heads));
    let delta = B::float_sum_dim(B::float_mul(out, dy.clone()), 3);
    let dv = B::float_matmul(B::float_transpose(p.clone()), dy.clone());
    let dp = B::float_sub(B::float_matmul(dy, B::float_transpose(x.v)), delta);
    let ds = B::float_mul_scalar(B::float_mul(p, dp), (1.0 / (d as f64).sqrt()).into());
    let dq = B::float_matmul(ds.clone(), x.k);
    let dk = B::float_matmul(B::float_transpose(ds), x.q);
    [join::<B>(dq, sq), join::<B>(dk, sk), join::<B>(dv, sk)]
}

fn dims(q: &FlexTensor, k: &FlexTensor) -> Dims {
    let (q, k) = (q.shape(), k.shape());
    Dims { b: q[0], sq: q[1], sk: k[1], hq: q[2], hkv: k[2], d: q[3] }
}

impl AttentionKernels for Flex {
    fn attention_fwd(q: FlexTensor, k: FlexTensor, v: FlexTensor) -> (FlexTensor, FlexTensor) {
        if !all_f32(&[&q, &k, &v]) {
            return composed_fwd::<Self>(q, k, v);
        }
        let (q, k, v) = (dense(q), dense(k), dense(v));
        let s = dims(&q, &k);
        let (out, lse) = attention_flex::forward(f32s(&q), f32s(&k), f32s(&v), s);
        (from_vec(out, q.shape()), from_vec(lse, Shape::from([s.b, s.hq, s.sq])))
    }

    fn attention_bwd(qkv: [FlexTensor; 3], out: FlexTensor, lse: FlexTensor, dy: FlexTensor) -> [FlexTensor; 3] {
        if !all_f32(&[&qkv[0], &qkv[1], &qkv[2], &dy]) {
            return composed_bwd::<Self>(qkv, out, lse, dy);
        }
        let ([q, k, v], dy) = (qkv.map(dense), dense(dy));
        let s = dims(&q, &k);
        let (dq, dk, dv) = attention_flex::backward([&q, &k, &v].map(f32s), f32s(&out), f32s(&lse), f32s(&dy), s);
        [from_vec(dq, q.shape()), from_vec(dk, k.shape()), from_vec(dv, v.shape())]
    }
}

#[backend_extension(Flex, Cube: cfg(feature = "cuda"), Autodiff)]
pub trait AttentionOp: Backend {
    fn attention(q: FloatTensor<Self>, k: FloatTensor<Self>, v: FloatTensor<Self>) -> FloatTensor<Self>;
}
super::route!(AttentionOp, AttentionKernels {
    fn attention(q: FloatTensor<Self>, k: FloatTensor<Self>, v: FloatTensor<Self>) = attention_out;
});

impl<B: AttentionKernels, C: CheckpointStrategy> AttentionOp for Autodiff<B, C> {
    fn attention(q: FloatTensor<Self>, k: FloatTensor<Self>, v: FloatTensor<Self>) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Attention;
        impl<B: AttentionKernels> Backward<B, 3> for Attention {
            type State = ([NodeId; 3], FloatTensor<B>, FloatTensor<B>);
            fn backward(self, ops: Ops<Self::State, 3>, grads: &mut Gradients, saved: &mut Checkpointer) {
                let dy = grads.consume::<B>(&ops.node);
                let (ids, out, lse) = ops.state;
                let qkv: [FloatTensor<B>; 3] = ids.map(|id| saved.retrieve_node_output(id));
                for (parent, d) in ops.parents.into_iter().zip(B::attention_bwd(qkv, out, lse, dy)) {
                    if let Some(parent) = parent {
                        grads.register::<B>(parent.id, d);
                    }
                }
            }
        }
        match Attention.prepare::<C>([q.node(), k.node(), v.node()]).compute_bound().stateful() {
            OpsKind::Tracked(mut prep) => {
                let ids = [prep.checkpoint(&q), prep.checkpoint(&k), prep.checkpoint(&v)];
                let (out, lse) = B::attention_fwd(q.into_primitive(), k.into_primitive(), v.into_primitive());
                prep.finish((ids, out.clone(), lse), out)
            }
            OpsKind::UnTracked(prep) => prep.finish(B::attention_out(q.into_primitive(), k.into_primitive(), v.into_primitive())),
        }
    }
}

/// q [batch, seq, heads, d], k and v [batch, keys, kv heads, d] with keys ≥ seq and heads a multiple of kv heads; the
/// queries are the last `seq` positions. Returns q's shape. Padding on the right needs no mask: nothing looks ahead.
pub fn attention(q: Tensor<4>, k: Tensor<4>, v: Tensor<4>) -> Tensor<4> {
    Tensor::from_dispatch(Dispatch::attention(q.into_dispatch(), k.into_dispatch(), v.into_dispatch()))
}
