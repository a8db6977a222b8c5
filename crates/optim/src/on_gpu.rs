//! Updates on a GPU: the weights equal the weights on the CPU and stay in their buffers, and clones keep their old weights.

use std::collections::BTreeMap;
use std::path::Path;

use burn::backend::Cube;
use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Tensor};

use super::{AdamWConfig, Optimizer};
use burnish_model::decoder::Decoder;
use burnish_model::gpu_backends::any_gpu;
use burnish_model::ops::{tensor_from_vec, to_host};
use burnish_model::weights::trained_shapes;
use burnish_model::{CausalLm, Gradients, Init};

fn model(device: &Device) -> CausalLm {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/models/qwen2");
    CausalLm::load(&folder, Init::Random { seed: 1 }, device).unwrap().trainable()
}

fn gradients(net: &Decoder, number: usize, device: &Device) -> Gradients {
    let mut gradients = Gradients::default();
    for (index, (name, shape)) in trained_shapes(net).into_iter().enumerate() {
        let size = shape.iter().product();
        let value = |i: usize| ((i * (index + 3) + number) as f32 * 0.7).sin();
        gradients.add(&name, tensor_from_vec::<1>((0..size).map(value).collect(), [size], device));
    }
    gradients
}

/// Makes an update like a learner; also returns the norm of the gradient.
fn update(model: &mut CausalLm, optimizer: &mut Optimizer, number: usize) -> f64 {
    let gradients = gradients(&model.net, number, &model.device);
    let norm = gradients.norm();
    let net = std::mem::replace(&mut model.net, Decoder::empty(&model.device));
    model.net = optimizer.update(net, gradients, 1e-2, 0.5);
    norm
}

/// Returns the result of `of` for each parameter.
fn each<T>(net: &Decoder, of: impl FnMut(Tensor<1>) -> T) -> BTreeMap<String, T> {
    struct Visitor<T, F>(F, Vec<String>, BTreeMap<String, T>);
    impl<T, F: FnMut(Tensor<1>) -> T> ModuleVisitor for Visitor<T, F> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let value = (self.0)(param.val().inner().flatten(0, D - 1));
            self.2.insert(self.1.join("."), value);
        }
        fn enter_module(&mut self, name: &str, _: &str) {
            self.1.push(name.to_owned());
        }
        fn exit_module(&mut self, _: &str, _: &str) {
            self.1.pop();
        }
    }
    let mut visitor = Visitor(of, Vec::new(), BTreeMap::new());
    net.visit(&mut visitor);
    visitor.2
}

#[test]
fn an_update_is_that_of_the_cpu_and_in_place() {
    let Some(device) = any_gpu() else { return };
    let config = AdamWConfig { beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.1 };
    let (mut cpu, mut gpu) = (model(&Device::flex()), model(&device));
    let [mut on_cpu, mut on_gpu] = [(); 2].map(|()| Optimizer::adamw(config));
    let memory = |t: Tensor<1>| std::ptr::from_ref(t.try_into_primitive::<Cube>().unwrap().handle.memory.descriptor());
    for number in 0..4 {
        // During the second update, the reference model shares the weights; the reference models of the other updates no longer
        // exist.
        let reference = (number == 1).then(|| gpu.frozen());
        let (before, buffers) = (each(&gpu.net, to_host), each(&gpu.net, memory));
        let norms = [update(&mut cpu, &mut on_cpu, number), update(&mut gpu, &mut on_gpu, number)];
        assert!((norms[0] - norms[1]).abs() < 1e-5 * norms[0], "{norms:?}");
        if let Some(reference) = reference {
            assert!(each(&reference.net, to_host) == before, "the reference has changed");
            assert!(each(&gpu.net, memory).values().all(|now| buffers.values().all(|then| now != then)));
        } else {
            assert!(each(&gpu.net, memory) == buffers, "update {number} is in other buffers");
        }
        for ((name, a), (_, b)) in each(&cpu.net, to_host).into_iter().zip(each(&gpu.net, to_host)) {
            assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-5), "{name} after update {number}");
        }
    }
}
