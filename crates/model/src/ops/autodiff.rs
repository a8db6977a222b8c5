//! An operation with a hand-written backward pass as one node of burn's autodiff graph.

use std::fmt::Debug;

use burn::backend::{
    Autodiff, Backend, TensorMetadata,
    autodiff::{
        NodeId,
        checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
        grads::Gradients,
        ops::{Backward, Ops, OpsKind},
    },
    tensor::FloatTensor,
};
use burn::tensor::{DType, FloatDType};

/// Maps the first K inputs, the state kept by the forward pass and the output's gradient to the gradients of the N inputs.
pub(crate) type BackwardFn<B, S, const N: usize, const K: usize> =
    fn([FloatTensor<B>; K], S, FloatTensor<B>) -> [FloatTensor<B>; N];

/// Casts shorter dtypes to f32, since sums and multi-step results lose more precision than storage does.
pub(super) fn wide<B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
    if x.dtype() == DType::F64 { x } else { B::float_cast(x, FloatDType::F32) }
}

struct Step<B: Backend, S, const N: usize, const K: usize>(BackwardFn<B, S, N, K>);

impl<B: Backend, S, const N: usize, const K: usize> Debug for Step<B, S, N, K> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("Step")
    }
}

impl<B: Backend, S: Clone + Send + Debug + 'static, const N: usize, const K: usize> Backward<B, N> for Step<B, S, N, K> {
    type State = ([NodeId; K], S);

    fn backward(self, ops: Ops<Self::State, N>, grads: &mut Gradients, saved: &mut Checkpointer) {
        let dy = grads.consume::<B>(&ops.node);
        let (ids, state) = ops.state;
        let inputs = ids.map(|id| saved.retrieve_node_output(id));
        for (parent, d) in ops.parents.into_iter().zip((self.0)(inputs, state, dy)) {
            if let Some(parent) = parent {
                grads.register::<B>(parent.id, d);
            }
        }
    }
}

/// Runs `plain` if no input is tracked, else `tracked`. `backward` gets the second result of `tracked` and the first K inputs.
pub(super) fn step<B: Backend, C: CheckpointStrategy, S: Clone + Send + Debug + 'static, const N: usize, const K: usize>(
    inputs: [FloatTensor<Autodiff<B, C>>; N],
    plain: impl FnOnce([FloatTensor<B>; N]) -> FloatTensor<B>,
    tracked: impl FnOnce([FloatTensor<B>; N]) -> (FloatTensor<B>, S),
    backward: BackwardFn<B, S, N, K>,
) -> FloatTensor<Autodiff<B, C>> {
    const { assert!(K <= N) };
    match Step(backward).prepare::<C>(inputs.each_ref().map(|x| x.node())).compute_bound().stateful() {
        OpsKind::Tracked(mut prep) => {
            let ids = std::array::from_fn(|i| prep.checkpoint(&inputs[i]));
            let (y, state) = tracked(inputs.map(|x| x.into_primitive()));
            prep.finish((ids, state), y)
        }
        OpsKind::UnTracked(prep) => prep.finish(plain(inputs.map(|x| x.into_primitive()))),
    }
}

/// Like [`step`], for an operation whose backward pass needs only `state`, no result of the forward pass.
pub(super) fn simple<B: Backend, C: CheckpointStrategy, S: Clone + Send + Debug + 'static, const N: usize, const K: usize>(
    inputs: [FloatTensor<Autodiff<B, C>>; N],
    state: S,
    forward: impl Fn([FloatTensor<B>; N], &S) -> FloatTensor<B>,
    backward: BackwardFn<B, S, N, K>,
) -> FloatTensor<Autodiff<B, C>> {
    let saved = state.clone();
    step::<B, C, S, N, K>(inputs, |x| forward(x, &state), |x| (forward(x, &saved), saved.clone()), backward)
}
