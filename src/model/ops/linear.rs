//! y = x·wᵀ + b with the weight as Hugging Face stores it, [out, in]. burn's own ops would give the weight's gradient as a
//! strided view; this writes it in place order.

use burn::backend::{
    Autodiff, Backend, Dispatch, Flex, TensorMetadata,
    autodiff::{
        NodeId,
        checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
        grads::Gradients,
        ops::{Backward, Ops, OpsKind},
    },
    backend_extension,
    tensor::FloatTensor,
};
use burn::tensor::{Shape, Tensor};

pub trait LinearKernels: Backend {
    /// x [n, in], w [out, in] -> [n, out]
    fn linear_fwd(x: FloatTensor<Self>, w: FloatTensor<Self>) -> FloatTensor<Self> {
        Self::float_matmul(x, Self::float_transpose(w))
    }
    /// Gradients of x and w
    fn linear_bwd(x: FloatTensor<Self>, w: FloatTensor<Self>, dy: FloatTensor<Self>) -> [FloatTensor<Self>; 2] {
        let dw = Self::float_matmul(Self::float_transpose(dy.clone()), x);
        [Self::float_matmul(dy, w), dw]
    }
    /// x [n, out] + b [out]
    fn bias_fwd(x: FloatTensor<Self>, b: FloatTensor<Self>) -> FloatTensor<Self> {
        let n = b.shape().num_elements();
        Self::float_add(x, Self::float_reshape(b, Shape::from([1, n])))
    }
    fn bias_bwd(dy: FloatTensor<Self>) -> FloatTensor<Self> {
        let n = dy.shape()[1];
        Self::float_reshape(Self::float_sum_dim(dy, 0), Shape::from([n]))
    }
}
impl LinearKernels for Flex {}

#[backend_extension(Flex, Cube: cfg(feature = "cuda"), Autodiff)]
pub trait LinearOp: Backend {
    fn linear(x: FloatTensor<Self>, w: FloatTensor<Self>) -> FloatTensor<Self>;
    fn bias(x: FloatTensor<Self>, b: FloatTensor<Self>) -> FloatTensor<Self>;
}
super::route!(LinearOp, LinearKernels {
    fn linear(x: FloatTensor<Self>, w: FloatTensor<Self>) = linear_fwd;
    fn bias(x: FloatTensor<Self>, b: FloatTensor<Self>) = bias_fwd;
});

impl<B: LinearKernels, C: CheckpointStrategy> LinearOp for Autodiff<B, C> {
    fn linear(x: FloatTensor<Self>, w: FloatTensor<Self>) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Linear;
        impl<B: LinearKernels> Backward<B, 2> for Linear {
            type State = [NodeId; 2];
            fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, saved: &mut Checkpointer) {
                let dy = grads.consume::<B>(&ops.node);
                let [x, w]: [FloatTensor<B>; 2] = ops.state.map(|id| saved.retrieve_node_output(id));
                for (parent, d) in ops.parents.into_iter().zip(B::linear_bwd(x, w, dy)) {
                    if let Some(parent) = parent {
                        grads.register::<B>(parent.id, d);
                    }
                }
            }
        }
        match Linear.prepare::<C>([x.node(), w.node()]).compute_bound().stateful() {
            OpsKind::Tracked(mut prep) => {
                let state = [prep.checkpoint(&x), prep.checkpoint(&w)];
                prep.finish(state, B::linear_fwd(x.into_primitive(), w.into_primitive()))
            }
            OpsKind::UnTracked(prep) => prep.finish(B::linear_fwd(x.into_primitive(), w.into_primitive())),
        }
    }

    fn bias(x: FloatTensor<Self>, b: FloatTensor<Self>) -> FloatTensor<Self> {
        #[derive(Debug)]
        struct Bias;
        impl<B: LinearKernels> Backward<B, 2> for Bias {
            type State = ();
            fn backward(self, ops: Ops<(), 2>, grads: &mut Gradients, _: &mut Checkpointer) {
                let ([x, b], dy) = (ops.parents, grads.consume::<B>(&ops.node));
                if let Some(b) = b {
                    grads.register::<B>(b.id, B::bias_bwd(dy.clone()));
                }
                if let Some(x) = x {
                    grads.register::<B>(x.id, dy);
                }
            }
        }
        let prep = Bias.prepare::<C>([x.node(), b.node()]).compute_bound().stateful();
        let y = B::bias_fwd(x.into_primitive(), b.into_primitive());
        match prep {
            OpsKind::Tracked(prep) => prep.finish((), y),
            OpsKind::UnTracked(prep) => prep.finish(y),
        }
    }
}

/// x [n, in], weight [out, in], bias [out] -> [n, out].
pub fn linear(x: Tensor<2>, weight: Tensor<2>, bias: Option<Tensor<1>>) -> Tensor<2> {
    let y = Dispatch::linear(x.into_dispatch(), weight.into_dispatch());
    Tensor::from_dispatch(match bias {
        Some(b) => Dispatch::bias(y, b.into_dispatch()),
        None => y,
    })
}
