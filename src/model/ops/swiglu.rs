//! SwiGLU: silu(gate) · up (Shazeer 2020, <https://arxiv.org/abs/2002.05202>).

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
use burn::tensor::Tensor;
use rayon::prelude::*;

use super::{flex::*, simd};

pub trait SwigluKernels: Backend {
    fn swiglu_fwd(gate: FloatTensor<Self>, up: FloatTensor<Self>) -> FloatTensor<Self> {
        composed_fwd::<Self>(gate, up)
    }
    /// Gradients of gate and up
    fn swiglu_bwd(gate: FloatTensor<Self>, up: FloatTensor<Self>, dy: FloatTensor<Self>) -> [FloatTensor<Self>; 2] {
        composed_bwd::<Self>(gate, up, dy)
    }
}

fn composed_fwd<B: Backend>(gate: FloatTensor<B>, up: FloatTensor<B>) -> FloatTensor<B> {
    B::float_mul(B::float_mul(gate.clone(), B::sigmoid(gate)), up)
}

/// d silu = s + silu·(1 − s) with s = sigmoid(gate).
fn composed_bwd<B: Backend>(gate: FloatTensor<B>, up: FloatTensor<B>, dy: FloatTensor<B>) -> [FloatTensor<B>; 2] {
    let s = B::sigmoid(gate.clone());
    let silu = B::float_mul(gate, s.clone());
    let d_up = B::float_mul(dy.clone(), silu.clone());
    let d_silu = B::float_add(s.clone(), B::float_sub(silu.clone(), B::float_mul(silu, s)));
    [B::float_mul(B::float_mul(dy, up), d_silu), d_up]
}

impl SwigluKernels for Flex {
    fn swiglu_fwd(gate: FlexTensor, up: FlexTensor) -> FlexTensor {
        if !all_f32(&[&gate, &up]) {
            return composed_fwd::<Self>(gate, up);
        }
        let (gate, up) = (dense(gate), dense(up));
        let (g, u) = (f32s(&gate), f32s(&up));
        let mut y = uninit(g.len());
        y.par_chunks_mut(GRAIN).zip(g.par_chunks(GRAIN)).zip(u.par_chunks(GRAIN)).for_each(|((y, g), u)| simd::swiglu(g, u, y));
        from_vec(y, gate.shape())
    }

    fn swiglu_bwd(gate: FlexTensor, up: FlexTensor, dy: FlexTensor) -> [FlexTensor; 2] {
        if !all_f32(&[&gate, &up, &dy]) {
            return composed_bwd::<Self>(gate, up, dy);
        }
        let (gate, up, mut d) = (dense(gate), dense(up), own(dy));
        let (g, u) = (f32s(&gate), f32s(&up));
        let mut d_gate = uninit(g.len());
        d.storage_mut::<f32>()
            .par_chunks_mut(GRAIN)
            .zip(d_gate.par_chunks_mut(GRAIN))
            .zip(g.par_chunks(GRAIN))
            .zip(u.par_chunks(GRAIN))
            .for_each(|(((d, d_gate), g), u)| simd::swiglu_bwd(g, u, d, d_gate));
        [from_vec(d_gate, gate.shape()), d]
    }
}

#[backend_extension(Flex, Cube: cfg(feature = "cuda"), Autodiff)]
pub trait SwigluOp: Backend {
    fn swiglu(gate: FloatTensor<Self>, up: FloatTensor<Self>) -> FloatTensor<Self>;
}
super::route!(SwigluOp, SwigluKernels { fn swiglu(gate: FloatTensor<Self>, up: FloatTensor<Self>) = swiglu_fwd; });

impl<B: SwigluKernels, C: CheckpointStrategy> SwigluOp for Autodiff<B, C> {
    fn swiglu(gate: FloatTensor<Self>, up: FloatTensor<Self>) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Swiglu;
        impl<B: SwigluKernels> Backward<B, 2> for Swiglu {
            type State = [NodeId; 2];
            fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, saved: &mut Checkpointer) {
                let dy = grads.consume::<B>(&ops.node);
                let [gate, up]: [FloatTensor<B>; 2] = ops.state.map(|id| saved.retrieve_node_output(id));
                for (parent, d) in ops.parents.into_iter().zip(B::swiglu_bwd(gate, up, dy)) {
                    if let Some(parent) = parent {
                        grads.register::<B>(parent.id, d);
                    }
                }
            }
        }
        match Swiglu.prepare::<C>([gate.node(), up.node()]).compute_bound().stateful() {
            OpsKind::Tracked(mut prep) => {
                let state = [prep.checkpoint(&gate), prep.checkpoint(&up)];
                prep.finish(state, B::swiglu_fwd(gate.into_primitive(), up.into_primitive()))
            }
            OpsKind::UnTracked(prep) => prep.finish(B::swiglu_fwd(gate.into_primitive(), up.into_primitive())),
        }
    }
}

/// silu(gate) · up, elementwise, both of one shape.
pub fn swiglu<const D: usize>(gate: Tensor<D>, up: Tensor<D>) -> Tensor<D> {
    assert_eq!(gate.dims(), up.dims());
    Tensor::from_dispatch(Dispatch::swiglu(gate.into_dispatch(), up.into_dispatch()))
}
