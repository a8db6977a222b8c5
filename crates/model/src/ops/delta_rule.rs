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
use super::delta_rule_composed::composed;
use super::delta_rule_flex::{self as kernels, DeltaSlices, Kept};
use super::flex::*;
use super::packed::Packed;

/// The heads of a delta rule. The number of value heads is a multiple of the key heads; consecutive value heads share a key head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeltaHeads {
    pub key_heads: usize,
    pub value_heads: usize,
    pub key_dim: usize,
    pub value_dim: usize,
}

impl DeltaHeads {
    /// The width of all queries, or of all keys.
    pub fn keys(self) -> usize {
        self.key_heads * self.key_dim
    }

    /// The width of all values.
    pub fn values(self) -> usize {
        self.value_heads * self.value_dim
    }

    /// The width of queries, keys and values together.
    pub fn width(self) -> usize {
        2 * self.keys() + self.values()
    }

    /// The elements of the states of all heads.
    pub fn states(self) -> usize {
        self.value_heads * self.state()
    }

    /// The elements of the state of one head.
    pub(super) fn state(self) -> usize {
        self.key_dim * self.value_dim
    }

    /// The number of value heads that share a key head.
    pub(super) fn group(self) -> usize {
        self.value_heads / self.key_heads
    }
}

/// The inputs of a delta rule.
#[derive(Clone, Debug)]
pub struct DeltaTensors {
    /// Queries, keys and values, [rows, width].
    pub qkv: Tensor<2>,
    /// [rows, value heads]
    pub a: Tensor<2>,
    /// [rows, value heads]
    pub b: Tensor<2>,
    /// `[value heads]`
    pub a_log: Tensor<1>,
    /// `[value heads]`
    pub dt_bias: Tensor<1>,
}

impl DeltaTensors {
    /// The slices of the tensors if all are on the CPU in f32, outside any graph.
    pub(super) fn slices(&self) -> Option<[FlexTensor; 5]> {
        let Self { qkv, a, b, a_log, dt_bias } = self;
        Some([flex_f32(qkv)?, flex_f32(a)?, flex_f32(b)?, flex_f32(a_log)?, flex_f32(dt_bias)?])
    }
}

/// The rows and heads of a delta rule.
#[derive(Clone, Debug)]
pub struct DeltaLayout {
    pub packed: Arc<Packed>,
    pub heads: DeltaHeads,
}

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
pub fn delta_rule(inputs: DeltaTensors, layout: DeltaLayout) -> Tensor<2> {
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

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::ops::recurrent_decode::{SlotRows, delta_step};
    use crate::ops::to_host;

    const HEADS: DeltaHeads = DeltaHeads { key_heads: 2, value_heads: 6, key_dim: 10, value_dim: 7 };

    fn values(seed: usize, shape: [usize; 2], scale: f32, device: &Device) -> Tensor<2> {
        let value = |i: usize| ((i * 37 + seed * 101) as f32 * 0.613).sin() * scale;
        tensor_from_vec((0..shape[0] * shape[1]).map(value).collect(), shape, device)
    }

    /// Rows whose decays are strong, weak and nearly 1.
    fn inputs(rows: usize, device: &Device) -> DeltaTensors {
        let (qkv, gates) = ([rows, HEADS.width()], [rows, HEADS.value_heads]);
        let vector = |seed, scale| values(seed, [1, HEADS.value_heads], scale, device).reshape([HEADS.value_heads]);
        DeltaTensors {
            qkv: values(1, qkv, 1.0, device),
            a: values(2, gates, 6.0, device),
            b: values(3, gates, 3.0, device),
            a_log: vector(4, 2.0),
            dt_bias: vector(5, 1.0),
        }
    }

    /// Stems and branches shorter than a chunk, as long as one, and longer; a branch without rows.
    fn packed() -> Arc<Packed> {
        let mut packed = Packed::default();
        packed.push(70, &[3, 0, 130]);
        packed.push(1, &[]);
        packed.push(64, &[64, 1]);
        packed.push(150, &[]);
        packed.into()
    }

    fn gradients(run: impl Fn(DeltaTensors) -> Tensor<2>, rows: usize, device: &Device) -> Vec<Vec<f32>> {
        let DeltaTensors { qkv, a, b, a_log, dt_bias } = inputs(rows, device);
        let leaf = |x: Tensor<2>| Tensor::from_inner(x).require_grad();
        let vector = |x: Tensor<1>| Tensor::from_inner(x).require_grad();
        let x = DeltaTensors { qkv: leaf(qkv), a: leaf(a), b: leaf(b), a_log: vector(a_log), dt_bias: vector(dt_bias) };
        let weights = Tensor::from_inner(values(9, [rows, HEADS.values()], 1.0, device));
        let y = run(x.clone());
        let mut graph = (y.clone() * weights).sum().backward();
        let matrices = [&x.qkv, &x.a, &x.b].map(|x| to_host(x.grad_remove(&mut graph).unwrap()));
        let vectors = [&x.a_log, &x.dt_bias].map(|x| to_host(x.grad_remove(&mut graph).unwrap()));
        [vec![to_host(y.inner())], matrices.to_vec(), vectors.to_vec()].concat()
    }

    #[track_caller]
    fn close(label: &str, got: &[f32], expected: &[f32]) {
        assert_eq!(got.len(), expected.len(), "{label}");
        let largest = expected.iter().fold(0.0f32, |max, x| max.max(x.abs()));
        let error = got.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(largest > 0.0 && error <= 1e-5 * largest, "{label}: {error} of {largest}");
    }

    #[test]
    fn the_kernels_equal_ordinary_operations() {
        let (packed, device) = (packed(), Device::flex());
        let layout = DeltaLayout { packed: packed.clone(), heads: HEADS };
        let kernels = gradients(|x| delta_rule(x, layout.clone()), packed.rows(), &device);
        let operations = gradients(|x| composed(x, &layout).0, packed.rows(), &device);
        for (name, (a, b)) in ["y", "qkv", "a", "b", "A_log", "dt_bias"].iter().zip(kernels.iter().zip(&operations)) {
            close(name, a, b);
        }
    }

    /// One token after another, from the states after the stems.
    #[test]
    fn single_steps_equal_a_pass() {
        let (packed, device) = (packed(), Device::flex());
        let (layout, x) = (DeltaLayout { packed: packed.clone(), heads: HEADS }, inputs(packed.rows(), &device));
        let (y, states) = delta_rule_with_states(x.clone(), &layout);
        let (composed_y, composed_states) = composed(x.clone(), &layout);
        close("outputs", &to_host(y.clone()), &to_host(composed_y));
        close("states", &to_host(states.clone()), &to_host(composed_states));
        let mut pool = states;
        // The third branch of the first tree, and the first of the third.
        for (tree, branch) in [(0, 3), (2, 1)] {
            let rows = packed.trees[tree][branch].rows.clone();
            let part = |x: &Tensor<2>| x.clone().narrow(0, rows.start, rows.len());
            let step = DeltaTensors { qkv: part(&x.qkv), a: part(&x.a), b: part(&x.b), ..x.clone() };
            let at = SlotRows::from(vec![tree; rows.len()]);
            let got = delta_step(step, HEADS, &mut pool, &at);
            close("steps", &to_host(got), &to_host(part(&y)));
        }
    }

    #[test]
    fn results_do_not_depend_on_the_number_of_threads() {
        let (packed, device) = (packed(), Device::flex());
        let layout = DeltaLayout { packed: packed.clone(), heads: HEADS };
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| gradients(|x| delta_rule(x, layout.clone()), packed.rows(), &device))
        };
        assert_eq!(run(1), run(3));
    }
}
