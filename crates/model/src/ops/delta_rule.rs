//! The gated delta rule over packed rows (Yang et al. 2024, <https://arxiv.org/abs/2412.06464>), as Qwen3-Next and Qwen3.5 use it.
//! Each value head has a state S [key dim, value dim], 0 before the first token. For a token with q, k, v and its gates,
//!
//! S ← e^g·S;  u = β·(v − Sᵀk);  S ← S + k·uᵀ;  y = Sᵀq,
//!
//! where q and k have length 1 (x / sqrt(Σx² + 1e-6)), q is divided by √(key dim), β = sigmoid(b) and
//! g = −e^(A_log)·softplus(a + dt_bias). After a shared stem, each branch continues from the stem's last state.
//!
//! The CPU kernels are in `delta_rule_flex.rs`, the form composed of ordinary tensor operations in `delta_rule_composed.rs`, and
//! the kernel of one token after another in `recurrent_decode.rs`. States are f32 for every dtype of the inputs.

use std::sync::Arc;

use burn::backend::{
    Autodiff, Backend, Dispatch, Flex, TensorMetadata, autodiff::checkpoint::strategy::CheckpointStrategy, backend_extension,
    flex::FlexTensor, tensor::FloatTensor,
};
use burn::tensor::{Shape, Tensor};

use super::autodiff::step;
use super::causal_conv::on_cpu;
use super::chunks::Kept;
use super::delta_inputs::{DeltaLayout, DeltaSlices, DeltaTensors};
use super::delta_rule_composed::composed;
use super::delta_rule_flex as kernels;
use super::flex::*;

/// The states at the beginning of chunks, kept for the backward pass.
type States = Arc<Vec<f32>>;

pub(crate) trait DeltaKernels: Backend {
    fn delta_fwd(inputs: [FloatTensor<Self>; 5], layout: &DeltaLayout, kept: Kept) -> (FloatTensor<Self>, States);
    /// Returns the gradients of the inputs.
    fn delta_bwd(
        inputs: [FloatTensor<Self>; 5],
        states: &[f32],
        dy: FloatTensor<Self>,
        layout: &DeltaLayout,
    ) -> [FloatTensor<Self>; 5];
}

impl DeltaKernels for Flex {
    fn delta_fwd(inputs: [FlexTensor; 5], layout: &DeltaLayout, kept: Kept) -> (FlexTensor, States) {
        let inputs = inputs.map(dense);
        let (y, states) = kernels::forward(&DeltaSlices::new(&inputs), layout, kept);
        (from_vec(y, Shape::from([layout.packed.rows(), layout.heads.values()])), states.into())
    }

    fn delta_bwd(inputs: [FlexTensor; 5], states: &[f32], dy: FlexTensor, layout: &DeltaLayout) -> [FlexTensor; 5] {
        let (inputs, dy) = (inputs.map(dense), dense(dy));
        let mut gradients = kernels::backward(&DeltaSlices::new(&inputs), states, f32s(&dy), layout).into_iter();
        inputs.map(|x| from_vec(gradients.next().expect("a gradient for each input"), x.shape()))
    }
}

#[backend_extension(Flex, Autodiff)]
pub(crate) trait DeltaOp: Backend {
    fn delta_rule(
        qkv: FloatTensor<Self>,
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        a_log: FloatTensor<Self>,
        dt_bias: FloatTensor<Self>,
        layout: DeltaLayout,
    ) -> FloatTensor<Self>;
}

impl DeltaOp for Flex {
    fn delta_rule(
        qkv: FlexTensor,
        a: FlexTensor,
        b: FlexTensor,
        a_log: FlexTensor,
        dt_bias: FlexTensor,
        layout: DeltaLayout,
    ) -> FlexTensor {
        Self::delta_fwd([qkv, a, b, a_log, dt_bias], &layout, Kept::Nothing).0
    }
}

impl<B: DeltaKernels, C: CheckpointStrategy> DeltaOp for Autodiff<B, C> {
    fn delta_rule(
        qkv: FloatTensor<Self>,
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        a_log: FloatTensor<Self>,
        dt_bias: FloatTensor<Self>,
        layout: DeltaLayout,
    ) -> FloatTensor<Self> {
        step::<B, C, _, 5, 5>(
            [qkv, a, b, a_log, dt_bias],
            |inputs| B::delta_fwd(inputs, &layout, Kept::Nothing).0,
            |inputs| {
                let (y, states) = B::delta_fwd(inputs, &layout, Kept::Chunks);
                (y, (states, layout.clone()))
            },
            |inputs, (states, layout): (States, DeltaLayout), dy| B::delta_bwd(inputs, &states, dy, &layout),
        )
    }
}

/// Computes the delta rule of every sequence -> [rows, value heads · value dim].
///
/// # Panics
/// If the shapes do not fit `layout`.
pub(crate) fn delta_rule(inputs: DeltaTensors, layout: DeltaLayout) -> Tensor<2> {
    let (rows, heads) = (layout.packed.rows(), layout.heads);
    let DeltaTensors { qkv, a, b, .. } = &inputs;
    assert_eq!(qkv.dims(), [rows, heads.width()], "queries, keys and values");
    assert_eq!((a.dims(), b.dims()), ([rows, heads.value_heads], [rows, heads.value_heads]), "gates");
    assert!(heads.value_heads.is_multiple_of(heads.key_heads), "{heads:?}");
    if !on_cpu(qkv) {
        return composed(inputs, &layout).0;
    }
    let DeltaTensors { qkv, a, b, a_log, dt_bias } = inputs;
    let (qkv, a, b) = (qkv.into_dispatch(), a.into_dispatch(), b.into_dispatch());
    Tensor::from_dispatch(Dispatch::delta_rule(qkv, a, b, a_log.into_dispatch(), dt_bias.into_dispatch(), layout))
}

/// Computes [`delta_rule`] outside any graph, and the state after each tree's stem [trees, value heads · key dim · value dim].
pub(crate) fn delta_rule_with_states(inputs: DeltaTensors, layout: &DeltaLayout) -> (Tensor<2>, Tensor<2>) {
    let Some(slices) = inputs.slices() else { return composed(inputs, layout) };
    let (y, states) = kernels::forward(&DeltaSlices::new(&slices), layout, Kept::Ends);
    let (device, heads) = (inputs.qkv.device(), layout.heads);
    let y = tensor_from_vec(y, [layout.packed.rows(), heads.values()], &device);
    (y, tensor_from_vec(states, [layout.packed.trees.len(), heads.states()], &device))
}
