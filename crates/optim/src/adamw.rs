//! AdamW (Loshchilov & Hutter 2019, <https://arxiv.org/abs/1711.05101>), torch's update in torch's order:
//!
//! w ← w·(1 − lr·λ);  m ← β₁m + (1−β₁)g;  v ← β₂v + (1−β₂)g²;
//! w ← w − lr/(1−β₁ᵗ) · m / (√v/√(1−β₂ᵗ) + ε)
//!
//! On the CPU, the update is one threaded pass over each parameter; on a GPU, one kernel updates many parameters. All parameters
//! decay, as in verl, except those that `no_decay_name_list` names. transformers' Trainer (and so TRL) exempts biases and the
//! weights of norms.

use burn::backend::flex::FlexTensor;
use burn::tensor::Tensor;
use rayon::prelude::*;

use super::kind::OptimizerKind;
use super::optimizer::Optimizer;
use super::rule::{Parameter, Rule, Slot, Step, TrainedParam, UpdatedParam, state, tensors};
use super::settings::OptimizerSettings;
#[cfg(feature = "gpu")]
use burnish_model::ops::adamw_on_gpu;
use burnish_model::ops::{AdamwStep, adamw_row, f32s, flex_f32};

pub(super) const ADAMW: OptimizerKind = OptimizerKind {
    name: "AdamW",
    aliases: &["adamw", "adam", "FusedAdam"],
    doc: "Adam with decoupled weight decay. Megatron's adam and TransformerEngine's FusedAdam are the same optimizer.\n\
          Formula: w ← w·(1 − lr·λ); m ← β₁m + (1 − β₁)g; v ← β₂v + (1 − β₂)g²; w ← w − lr/(1 − β₁ᵗ) · m/(√v/√(1 − β₂ᵗ) + ε).\n\
          Paper: Loshchilov & Hutter 2019, arXiv:1711.05101.\n\
          verl: torch.optim.AdamW.\n\
          When: unless there is a reason for another.",
    reads: &["betas", "eps", "weight_decay"],
    options: &[],
    build: |settings| Ok(Box::new(AdamW(AdamWConfig::from_settings(settings)))),
};

#[derive(Clone, Copy, Debug)]
pub struct AdamWConfig {
    pub beta1: f64,
    pub beta2: f64,
    pub eps: f64,
    pub weight_decay: f64,
}

impl AdamWConfig {
    pub(super) fn from_settings(settings: &OptimizerSettings) -> Self {
        let OptimizerSettings { betas: [beta1, beta2], eps, weight_decay, .. } = *settings;
        Self { beta1, beta2, eps, weight_decay }
    }
}

impl Optimizer {
    /// Creates AdamW with these constants.
    pub fn adamw(config: AdamWConfig) -> Self {
        Self::new(ADAMW.name, Box::new(AdamW(config)))
    }
}

/// Returns the slots of the two moment estimates, by torch's names.
pub(super) fn moments(parameter: Parameter) -> Vec<Slot> {
    ["exp_avg", "exp_avg_sq"].map(|kind| Slot::f32(kind, parameter.size())).into()
}

/// The update of AdamW.
pub(super) struct AdamW(pub AdamWConfig);

impl Rule for AdamW {
    fn slots(&self, parameter: Parameter) -> Vec<Slot> {
        moments(parameter)
    }

    fn splits(&self, _: Parameter) -> bool {
        true
    }

    fn update(&self, at: Step, TrainedParam { weight: w, gradient: g, state: previous, .. }: TrainedParam) -> UpdatedParam {
        let [m, v] = tensors(previous, &w.device(), || [w.zeros_like(), w.zeros_like()]);
        let (w, m, v) = step(w, m, v, g, constants(&self.0, at.lr, at.number, at.grad_scale));
        (w, state([m, v]))
    }

    #[cfg(feature = "gpu")]
    fn update_together(&self, at: Step, all: Vec<TrainedParam>) -> Vec<UpdatedParam> {
        let with_moments = |TrainedParam { weight: w, gradient: g, state, .. }| {
            let [m, v] = tensors(state, &w.device(), || [w.zeros_like(), w.zeros_like()]);
            [w, m, v, g]
        };
        let constants = constants(&self.0, at.lr, at.number, at.grad_scale);
        let one_by_one =
            |all: Vec<[Tensor<1>; 4]>| all.into_iter().map(|[w, m, v, g]| step(w, m, v, g, constants).into()).collect();
        let updated = adamw_on_gpu(all.into_iter().map(with_moments).collect(), constants).unwrap_or_else(one_by_one);
        updated.into_iter().map(|[w, m, v]| (w, state([m, v]))).collect()
    }
}

/// Returns the constants of a step. Each is computed in f64 and then rounded, as in torch.
pub(super) fn constants(c: &AdamWConfig, lr: f64, step: u64, grad_scale: f64) -> AdamwStep {
    AdamwStep {
        lr: lr as f32,
        gain1: (1.0 - c.beta1) as f32,
        gain2: (1.0 - c.beta2) as f32,
        beta2: c.beta2 as f32,
        eps: c.eps as f32,
        keep: (1.0 - lr * c.weight_decay) as f32,
        correction1: (1.0 - c.beta1.powi(step as i32)) as f32,
        correction2_sqrt: (1.0 - c.beta2.powi(step as i32)).sqrt() as f32,
        grad_scale: grad_scale as f32,
    }
}

/// Makes one update of weights and moments.
pub(super) fn step(w: Tensor<1>, m: Tensor<1>, v: Tensor<1>, g: Tensor<1>, s: AdamwStep) -> (Tensor<1>, Tensor<1>, Tensor<1>) {
    if let Some(g) = flex_f32(&g) {
        let [mut w, mut m, mut v] = [w, m, v].map(owned_flex);
        let rows = w.storage_mut::<f32>().par_chunks_mut(GRAIN).zip(m.storage_mut::<f32>().par_chunks_mut(GRAIN));
        rows.zip(v.storage_mut::<f32>().par_chunks_mut(GRAIN))
            .zip(f32s(&g).par_chunks(GRAIN))
            .for_each(|(((w, m), v), g)| adamw_row(w, m, v, g, s));
        let [w, m, v] = [w, m, v].map(Tensor::from_primitive::<burn::backend::Flex>);
        return (w, m, v);
    }
    #[cfg(feature = "gpu")]
    let [w, m, v, g] = match adamw_on_gpu(vec![[w, m, v, g]], s) {
        Ok(mut updated) => return updated.remove(0).into(),
        Err(mut all) => all.remove(0),
    };
    let g = g * s.grad_scale;
    let m = m.clone() + (g.clone() - m) * s.gain1;
    let v = v * s.beta2 + g.square() * s.gain2;
    let denominator = v.clone().sqrt() / s.correction2_sqrt + s.eps;
    (w * s.keep - m.clone() / denominator * (s.lr / s.correction1), m, v)
}

/// Elements per task.
const GRAIN: usize = 64 * 1024;

/// Converts the tensor to a flex buffer that is not shared.
fn owned_flex(t: Tensor<1>) -> FlexTensor {
    burnish_model::ops::whole_buffer(
        t.try_into_primitive::<burn::backend::Flex>().expect("parameters and gradients share a device"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;
    use burn::tensor::FloatDType::{F32, F64};
    use burnish_model::ops::{tensor_from_vec, to_host};

    /// The composed body agrees with the fused one: on flex, f64 tensors take the composed one.
    #[test]
    fn composed_equals_fused() {
        let constants = AdamwStep {
            lr: 1e-2,
            gain1: 0.1,
            gain2: 0.01,
            beta2: 0.99,
            eps: 1e-8,
            keep: 0.999,
            correction1: 0.19,
            correction2_sqrt: 0.141,
            grad_scale: 0.5,
        };
        let column = |k: f32| tensor_from_vec((0..1000).map(|i| (i as f32 * k).sin()).collect(), [1000], &Device::flex());
        let (w, m, v, g) = (column(0.3), column(0.7), column(1.1).square(), column(1.9));
        let fused = step(w.clone(), m.clone(), v.clone(), g.clone(), constants);
        let composed = step(w.cast(F64), m.cast(F64), v.cast(F64), g.cast(F64), constants);
        for (a, b) in [(fused.0, composed.0), (fused.1, composed.1), (fused.2, composed.2)] {
            let error: f32 = (a - b.cast(F32)).abs().max().into_scalar();
            assert!(error < 1e-6, "{error}");
        }
    }
    /// The first step of AdamW is lr in the direction of the gradient, for any betas: m is (1−β₁)g and v is (1−β₂)g², and the
    /// corrections divide both factors out. Tested in float32, which takes the fused body, and in float64, which takes the
    /// composed one.
    #[test]
    fn the_first_step_is_the_learning_rate_for_betas_near_one() {
        let gradients: Vec<f32> = (1..=64).map(|i| 1e-3 * (i as f32) * if i % 2 == 0 { -1.0 } else { 1.0 }).collect();
        for beta2 in [0.0, 0.95, 0.999, 0.999999, 0.99999999, 1.0 - 1e-12] {
            for beta1 in [0.0, 0.9, 0.9999999] {
                let config = AdamWConfig { beta1, beta2, eps: 1e-15, weight_decay: 0.0 };
                let constants = constants(&config, 1e-4, 1, 1.0);
                for dtype in [F32, F64] {
                    let column = |values: Vec<f32>| tensor_from_vec(values, [64], &Device::flex()).cast(dtype);
                    let zeros = || column(vec![0.0; 64]);
                    let (weights, ..) = step(zeros(), zeros(), zeros(), column(gradients.clone()), constants);
                    for (w, g) in to_host(weights.cast(F32)).into_iter().zip(&gradients) {
                        assert!((w + 1e-4 * g.signum()).abs() < 1e-9, "betas {beta1} {beta2}, {dtype:?}: {w}");
                    }
                }
            }
        }
    }
}
