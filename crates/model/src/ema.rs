//! Moves weights towards the weights of another model of the same architecture (an exponential moving average).

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::Tensor;

use super::causal_lm::CausalLm;
use super::decoder::Decoder;

impl CausalLm {
    /// Returns this model, without gradients, with every weight w replaced by (1 − α)·w + α·w′, where w′ is the weight of
    /// `other`. Parameters are replaced one at a time, so that no second copy of the model is held.
    ///
    /// # Panics
    /// If `other` has another architecture.
    pub fn moved_towards(mut self, other: &Self, alpha: f64) -> Self {
        let other = other.frozen();
        let mut weights = Weights(Vec::new());
        other.net.visit(&mut weights);
        weights.0.reverse();
        let net = std::mem::replace(&mut self.net, Decoder::empty(&self.device));
        self.net = net.map(&mut Interpolation { other_parameters: weights.0, alpha });
        self
    }
}

/// All parameters, flat, in the order of a visit; shared, not copied.
struct Weights(Vec<Tensor<1>>);

impl ModuleVisitor for Weights {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.push(param.val().flatten(0, D - 1));
    }
}

struct Interpolation {
    /// The other model's parameters, in reverse order.
    other_parameters: Vec<Tensor<1>>,
    alpha: f64,
}

impl ModuleMapper for Interpolation {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let (id, weight, mapper) = param.consume();
        let other = self.other_parameters.pop().expect("both models have the same parameters").reshape(weight.dims());
        Param::from_mapped_value(id, weight * (1.0 - self.alpha) + other * self.alpha, mapper)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use burn::tensor::Device;

    use super::super::Init;
    use super::super::weights::file_tensors;
    use super::*;

    #[test]
    fn every_weight_moves_by_alpha_and_the_others_stay() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/models/qwen2");
        let load = |seed| CausalLm::load(&folder, Init::Random { seed }, &Device::flex()).unwrap();
        let weights = |model: &CausalLm| -> Vec<(String, Vec<f32>)> {
            file_tensors(&model.net, &model.config).iter().map(|tensor| (tensor.name.clone(), tensor.values())).collect()
        };
        let (policy, shared) = (load(1).trainable(), load(2));
        let moved = shared.clone().moved_towards(&policy, 0.25);
        for (((name, moved), (_, from)), (_, to)) in weights(&moved).iter().zip(weights(&shared)).zip(weights(&policy)) {
            let near = |(moved, (from, to)): (&f32, (&f32, &f32))| (moved - (0.75 * from + 0.25 * to)).abs() < 1e-6;
            assert!(moved.iter().zip(from.iter().zip(&to)).all(near), "{name}");
        }
        assert_eq!(weights(&policy), weights(&load(1)));
        assert_eq!(weights(&shared), weights(&load(2)));
        assert_eq!(weights(&shared.moved_towards(&policy, 1.0)), weights(&policy));
    }
}
