//! Weights moved towards those of another model of the same architecture.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::Tensor;

use super::causal_lm::CausalLm;
use super::decoder::Decoder;

impl CausalLm {
    /// This model, without gradients, with every weight w replaced by (1 − α)·w + α·w′, where w′ is that of `other`. One parameter at a
    /// time: no second copy of the model is held.
    ///
    /// # Panics
    /// Another architecture.
    pub fn moved_towards(mut self, other: &Self, alpha: f64) -> Self {
        let other = other.frozen();
        let mut weights = Weights(Vec::new());
        other.net.visit(&mut weights);
        weights.0.reverse();
        let net = std::mem::replace(&mut self.net, Decoder::empty(&self.device));
        self.net = net.map(&mut Mix { others: weights.0, alpha });
        self
    }
}

/// Every parameter, flat, in the order of a visit; shared and not copied.
struct Weights(Vec<Tensor<1>>);

impl ModuleVisitor for Weights {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.0.push(param.val().flatten(0, D - 1));
    }
}

struct Mix {
    /// The other's parameters, the first one last.
    others: Vec<Tensor<1>>,
    alpha: f64,
}

impl ModuleMapper for Mix {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let (id, weight, mapper) = param.consume();
        let other = self.others.pop().expect("both models have the same parameters").reshape(weight.dims());
        Param::from_mapped_value(id, weight * (1.0 - self.alpha) + other * self.alpha, mapper)
    }
}
