//! The selective scan of Mamba-2 over packed rows (Dao & Gu 2024, <https://arxiv.org/abs/2405.21060>), as transformers 5.24
//! computes it for Granite 4. Each head has a state S [state dim, head dim], 0 before the first token. For a token with x, B, C
//! and its time step,
//!
//! S ← e^(Δ·A)·S + Δ·B·xᵀ;  y = Sᵀ·C + D·x,
//!
//! where Δ = softplus(dt + dt_bias) within the limits of time steps, and A = −e^(A_log). After a shared stem, each branch continues
//! from the stem's last state. transformers does not apply the limits when it decodes with a cache; here, all passes do.
//!
//! The CPU kernels are in `scan_flex.rs`, the form composed of ordinary tensor operations in `scan_composed.rs`, and the kernel of
//! one token after another in `scan_decode.rs`. States are f32 for every dtype of the inputs.

use std::sync::Arc;

use burn::backend::{
    Autodiff, Backend, Dispatch, Flex, TensorMetadata, autodiff::checkpoint::strategy::CheckpointStrategy, backend_extension,
    flex::FlexTensor, tensor::FloatTensor,
};
use burn::tensor::{Shape, Tensor};

use super::autodiff::step;
use super::causal_conv::on_cpu;
use super::chunks::Kept;
use super::flex::*;
use super::scan_composed::composed;
use super::scan_flex as kernels;
use super::scan_inputs::{ScanLayout, ScanSlices, ScanTensors};

/// The states at the beginning of chunks, kept for the backward pass.
type States = Arc<Vec<f32>>;

pub(crate) trait ScanKernels: Backend {
    fn scan_fwd(inputs: [FloatTensor<Self>; 5], layout: &ScanLayout, kept: Kept) -> (FloatTensor<Self>, States);
    /// Returns the gradients of the inputs.
    fn scan_bwd(
        inputs: [FloatTensor<Self>; 5],
        states: &[f32],
        dy: FloatTensor<Self>,
        layout: &ScanLayout,
    ) -> [FloatTensor<Self>; 5];
}

impl ScanKernels for Flex {
    fn scan_fwd(inputs: [FlexTensor; 5], layout: &ScanLayout, kept: Kept) -> (FlexTensor, States) {
        let inputs = inputs.map(dense);
        let (y, states) = kernels::forward(&ScanSlices::new(&inputs), layout, kept);
        (from_vec(y, Shape::from([layout.packed.rows(), layout.shape.values()])), states.into())
    }

    fn scan_bwd(inputs: [FlexTensor; 5], states: &[f32], dy: FlexTensor, layout: &ScanLayout) -> [FlexTensor; 5] {
        let (inputs, dy) = (inputs.map(dense), dense(dy));
        let mut gradients = kernels::backward(&ScanSlices::new(&inputs), states, f32s(&dy), layout).into_iter();
        inputs.map(|x| from_vec(gradients.next().expect("a gradient for each input"), x.shape()))
    }
}

#[backend_extension(Flex, Autodiff)]
pub(crate) trait ScanOp: Backend {
    fn selective_scan(
        xbc: FloatTensor<Self>,
        dt: FloatTensor<Self>,
        a_log: FloatTensor<Self>,
        dt_bias: FloatTensor<Self>,
        skip: FloatTensor<Self>,
        layout: ScanLayout,
    ) -> FloatTensor<Self>;
}

impl ScanOp for Flex {
    fn selective_scan(
        xbc: FlexTensor,
        dt: FlexTensor,
        a_log: FlexTensor,
        dt_bias: FlexTensor,
        skip: FlexTensor,
        layout: ScanLayout,
    ) -> FlexTensor {
        Self::scan_fwd([xbc, dt, a_log, dt_bias, skip], &layout, Kept::Nothing).0
    }
}

impl<B: ScanKernels, C: CheckpointStrategy> ScanOp for Autodiff<B, C> {
    fn selective_scan(
        xbc: FloatTensor<Self>,
        dt: FloatTensor<Self>,
        a_log: FloatTensor<Self>,
        dt_bias: FloatTensor<Self>,
        skip: FloatTensor<Self>,
        layout: ScanLayout,
    ) -> FloatTensor<Self> {
        step::<B, C, _, 5, 5>(
            [xbc, dt, a_log, dt_bias, skip],
            |inputs| B::scan_fwd(inputs, &layout, Kept::Nothing).0,
            |inputs| {
                let (y, states) = B::scan_fwd(inputs, &layout, Kept::Chunks);
                (y, (states, layout.clone()))
            },
            |inputs, (states, layout): (States, ScanLayout), dy| B::scan_bwd(inputs, &states, dy, &layout),
        )
    }
}

/// Computes the scan of every sequence -> [rows, heads · head dim].
///
/// # Panics
/// If the shapes do not fit `layout`.
pub(crate) fn scan(inputs: ScanTensors, layout: ScanLayout) -> Tensor<2> {
    let (rows, shape) = (layout.packed.rows(), layout.shape);
    assert_eq!((inputs.xbc.dims(), inputs.dt.dims()), ([rows, shape.width()], [rows, shape.heads]), "inputs of a scan");
    assert!(shape.heads.is_multiple_of(shape.groups), "{shape:?}");
    if !on_cpu(&inputs.xbc) {
        return composed(inputs, &layout).0;
    }
    let ScanTensors { xbc, dt, a_log, dt_bias, skip } = inputs;
    let [a_log, dt_bias, skip] = [a_log, dt_bias, skip].map(Tensor::into_dispatch);
    Tensor::from_dispatch(Dispatch::selective_scan(xbc.into_dispatch(), dt.into_dispatch(), a_log, dt_bias, skip, layout))
}

/// Computes [`scan`] outside any graph, and the state after each tree's stem [trees, heads · state dim · head dim].
pub(crate) fn scan_with_states(inputs: ScanTensors, layout: &ScanLayout) -> (Tensor<2>, Tensor<2>) {
    let Some(slices) = inputs.slices() else { return composed(inputs, layout) };
    let (y, states) = kernels::forward(&ScanSlices::new(&slices), layout, Kept::Ends);
    let (device, shape) = (inputs.xbc.device(), layout.shape);
    let y = tensor_from_vec(y, [layout.packed.rows(), shape.values()], &device);
    (y, tensor_from_vec(states, [layout.packed.trees.len(), shape.states()], &device))
}
