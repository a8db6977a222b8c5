//! Parameters that are detached from a network to be updated together, and put back.

use std::collections::BTreeMap;

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, Tensor};

use burnish_model::Gradients;
use burnish_model::decoder::Decoder;

/// A parameter outside its network; weight and gradient are flat, and not part of an autodiff graph.
pub(crate) struct DetachedParam {
    pub name: String,
    pub shape: Vec<usize>,
    pub weight: Tensor<1>,
    pub gradient: Tensor<1>,
}

/// Detaches the parameters that have a gradient from a network, which keeps placeholders. Only the result has the weights then,
/// so they can be updated in place.
pub(crate) fn detach(net: Decoder, gradients: Gradients) -> (Decoder, Vec<DetachedParam>) {
    let mut detach = Detach { gradients, detached: Vec::new(), path: Vec::new() };
    let net = net.map(&mut detach);
    (net, detach.detached)
}

/// Puts back weights, by name, that were [detached](detach).
pub(crate) fn put_back(net: Decoder, weights: BTreeMap<String, (Tensor<1>, Vec<usize>)>) -> Decoder {
    net.map(&mut PutBack { weights, path: Vec::new() })
}

struct Detach {
    gradients: Gradients,
    detached: Vec<DetachedParam>,
    path: Vec<String>,
}

impl ModuleMapper for Detach {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let name = self.path.join(".");
        let Some(gradient) = self.gradients.0.remove(&name) else { return param };
        let (id, weight, mapper) = param.consume();
        let shape = weight.dims();
        let weight = weight.inner().reshape([shape.iter().product::<usize>()]);
        self.detached.push(DetachedParam { name, shape: shape.into(), weight, gradient });
        Param::from_mapped_value(id, Tensor::zeros([1; D], &Device::flex()), mapper)
    }
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }
    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }
}

struct PutBack {
    weights: BTreeMap<String, (Tensor<1>, Vec<usize>)>,
    path: Vec<String>,
}

impl ModuleMapper for PutBack {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some((weight, shape)) = self.weights.remove(&self.path.join(".")) else { return param };
        let shape: [usize; D] = shape.try_into().expect("the shape of this parameter");
        let (id, _, mapper) = param.consume();
        Param::from_mapped_value(id, Tensor::from_inner(weight.reshape(shape)).require_grad(), mapper)
    }
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }
    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }
}
