//! AdamW (Loshchilov & Hutter 2019, <https://arxiv.org/abs/1711.05101>), torch's update in torch's order:
//!
//! w ← w·(1 − lr·λ);  m ← β₁m + (1−β₁)g;  v ← β₂v + (1−β₂)g²;
//! w ← w − lr/(1−β₁ᵗ) · m / (√v/√(1−β₂ᵗ) + ε)
//!
//! On the CPU the update is one threaded pass over each parameter, elsewhere ordinary tensor operations. All parameters decay, as
//! in verl. TRL uses the optimizer of transformers' Trainer, which leaves out biases and the weights of norms.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use burn::backend::flex::FlexTensor;
use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, Tensor};
use rayon::prelude::*;

use crate::model::Gradients;
use crate::model::decoder::Decoder;
use crate::model::ops::{AdamwStep, adamw_row, f32s, flex_f32, tensor_from_vec, to_host};
use crate::model::tensor_files::Deferred;
use crate::model::weights::trained_sizes;

#[derive(Clone, Copy, Debug)]
pub struct AdamWConfig {
    pub beta1: f64,
    pub beta2: f64,
    pub eps: f64,
    pub weight_decay: f64,
}

/// First and second moments of one parameter, flat.
type Moments = (Tensor<1>, Tensor<1>);

/// The optimizer and its state by parameter name.
pub struct AdamW {
    config: AdamWConfig,
    /// The number of updates made.
    pub step: u64,
    state: BTreeMap<String, Moments>,
}

impl AdamW {
    pub fn new(config: AdamWConfig) -> Self {
        Self { config, step: 0, state: BTreeMap::new() }
    }

    /// Updates every parameter that has a gradient, after scaling the gradients by `grad_scale`.
    pub fn update(&mut self, net: Decoder, gradients: Gradients, lr: f64, grad_scale: f64) -> Decoder {
        self.step += 1;
        let c = &self.config;
        let constants = constants(c, lr, self.step, grad_scale);
        net.map(&mut Update { constants, gradients, state: &mut self.state, path: Vec::new() })
    }

    /// The moments as named tensors, `NAME.exp_avg` and `NAME.exp_avg_sq` (torch's names), for a checkpoint.
    pub fn tensors(&self) -> Vec<Deferred<'_>> {
        fn named<'a>(name: &str, kind: &str, t: &'a Tensor<1>) -> Deferred<'a> {
            Deferred::new(format!("{name}.{kind}"), t.dims().to_vec(), || to_host(t.clone()))
        }
        self.state.iter().flat_map(|(name, (m, v))| [named(name, "exp_avg", m), named(name, "exp_avg_sq", v)]).collect()
    }

    /// Restores what [`tensors`](AdamW::tensors) returned, for the parameters of `net` that are trained. A parameter without
    /// moments has had no gradient so far, as all of them before the first update: it starts from zeros, as in an uninterrupted
    /// run.
    ///
    /// # Errors
    /// If there are no moments at all after updates, or one moment of a parameter is there without the other, has another size
    /// than the parameter, or belongs to a parameter that is not trained.
    pub fn restore(&mut self, step: u64, mut tensors: BTreeMap<String, Vec<f32>>, net: &Decoder, device: &Device) -> Result<()> {
        if step > 0 && tensors.is_empty() {
            bail!("optimizer state: {step} updates were made, and there are no moments");
        }
        self.step = step;
        self.state.clear();
        for (parameter, size) in trained_sizes(net) {
            let names = ["exp_avg", "exp_avg_sq"].map(|kind| format!("{parameter}.{kind}"));
            if names.iter().all(|name| !tensors.contains_key(name)) {
                continue;
            }
            let mut moment = |name: &String| {
                let values = tensors.remove(name).with_context(|| format!("optimizer state: `{name}` is missing"))?;
                if values.len() != size {
                    bail!("optimizer state: `{name}` has {} elements, its parameter {size}", values.len());
                }
                Ok(tensor_from_vec(values, [size], device))
            };
            let moments = (moment(&names[0])?, moment(&names[1])?);
            self.state.insert(parameter, moments);
        }
        match tensors.keys().next() {
            None => Ok(()),
            Some(name) => bail!("optimizer state: `{name}` belongs to no trained parameter of this model"),
        }
    }
}

/// The constants of a step. Each is computed in f64 and then rounded, as in torch.
fn constants(c: &AdamWConfig, lr: f64, step: u64, grad_scale: f64) -> AdamwStep {
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

struct Update<'a> {
    constants: AdamwStep,
    gradients: Gradients,
    state: &'a mut BTreeMap<String, Moments>,
    path: Vec<String>,
}

impl ModuleMapper for Update<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let name = self.path.join(".");
        let Some(gradient) = self.gradients.0.remove(&name) else { return param };
        let (id, weight, mapper) = param.consume();
        let shape = weight.dims();
        let weight = weight.inner().reshape([shape.iter().product::<usize>()]);
        let zeros = || (weight.zeros_like(), weight.zeros_like());
        let (m, v) = self.state.remove(&name).unwrap_or_else(zeros);
        let (weight, m, v) = step(weight, m, v, gradient, self.constants);
        self.state.insert(name, (m, v));
        Param::from_mapped_value(id, Tensor::from_inner(weight.reshape(shape)).require_grad(), mapper)
    }
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }
    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }
}

fn step(w: Tensor<1>, m: Tensor<1>, v: Tensor<1>, g: Tensor<1>, s: AdamwStep) -> (Tensor<1>, Tensor<1>, Tensor<1>) {
    if let Some(g) = flex_f32(&g) {
        let [mut w, mut m, mut v] = [w, m, v].map(whole);
        let rows = w.storage_mut::<f32>().par_chunks_mut(GRAIN).zip(m.storage_mut::<f32>().par_chunks_mut(GRAIN));
        rows.zip(v.storage_mut::<f32>().par_chunks_mut(GRAIN))
            .zip(f32s(&g).par_chunks(GRAIN))
            .for_each(|(((w, m), v), g)| adamw_row(w, m, v, g, s));
        let [w, m, v] = [w, m, v].map(Tensor::from_primitive::<burn::backend::Flex>);
        return (w, m, v);
    }
    let g = g * s.grad_scale;
    let m = m.clone() + (g.clone() - m) * s.gain1;
    let v = v * s.beta2 + g.square() * s.gain2;
    let denominator = v.clone().sqrt() / s.correction2_sqrt + s.eps;
    (w * s.keep - m.clone() / denominator * (s.lr / s.correction1), m, v)
}

/// Elements per task.
const GRAIN: usize = 64 * 1024;

/// Turns the tensor into a flex buffer that is not shared.
fn whole(t: Tensor<1>) -> FlexTensor {
    crate::model::ops::own(t.try_into_primitive::<burn::backend::Flex>().expect("parameters and gradients share a device"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::model::{CausalLm, Init};
    use burn::tensor::FloatDType::{F32, F64};

    #[test]
    fn a_parameter_without_moments_had_no_gradient_and_half_of_them_is_damage() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/models/qwen2");
        let net = CausalLm::load(&folder, Init::Random { seed: 1 }, &Device::flex()).unwrap().trainable().net;
        let (name, size) = trained_sizes(&net).into_iter().next().unwrap();
        let restored = |step: u64, names: &[&str]| {
            let tensors = names.iter().map(|name| (name.to_string(), vec![0.5; size])).collect();
            let mut adamw = AdamW::new(AdamWConfig { beta1: 0.9, beta2: 0.99, eps: 1e-8, weight_decay: 0.0 });
            adamw.restore(step, tensors, &net, &Device::flex()).map(|()| (adamw.step, adamw.tensors().len()))
        };
        let [m, v] = ["exp_avg", "exp_avg_sq"].map(|kind| format!("{name}.{kind}"));
        assert_eq!(restored(0, &[]).unwrap(), (0, 0));
        assert!(restored(3, &[]).unwrap_err().to_string().contains("3 updates were made"));
        assert_eq!(restored(3, &[&m, &v]).unwrap(), (3, 2));
        assert!(restored(3, &[&m]).unwrap_err().to_string().contains("exp_avg_sq` is missing"));
        assert!(restored(3, &["x.exp_avg"]).unwrap_err().to_string().contains("belongs to no trained parameter"));
    }

    /// The composed body, which CUDA runs, agrees with the fused one: on flex, f64 tensors take the composed one.
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
    /// The first step of AdamW is lr in the direction of the gradient, whatever the betas: m is (1−β₁)g and v is (1−β₂)g², and
    /// the corrections divide both factors out. Tested in float32, where the fused body runs, and in float64, where the composed
    /// one does.
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
