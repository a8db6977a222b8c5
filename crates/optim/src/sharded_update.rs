//! Update of a network by several ranks: each updates its own elements, and receives the others'.

use std::collections::BTreeMap;
use std::ops::Range;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Bytes, Tensor};

use super::file_tensors::FileTensors;
use super::optimizer::{Optimizer, OptimizerState};
use super::rule::{Step, TrainedParam};
use super::shards::Shards;
use burnish_distributed::Ranks;
use burnish_model::decoder::Decoder;
use burnish_model::ops::{f32s, flex_f32, tensor_from_vec, to_host};

impl Optimizer {
    /// Updates the elements of a rank, after scaling the gradients by `grad_scale`. `gradients` has, for each parameter, the
    /// gradients of these elements, or `None` if no rank has a gradient. Returns the concatenated new weights of the parameters
    /// that have gradients.
    pub(super) fn update_shard(
        &mut self,
        net: &Decoder,
        (shards, rank): (&Shards, usize),
        gradients: Vec<Option<Vec<f32>>>,
        lr: f64,
        grad_scale: f64,
    ) -> Vec<f32> {
        self.step += 1;
        let step = Step { number: self.step, lr, grad_scale };
        let mut weights = weights_of(net, shards);
        let mut updated = Vec::new();
        for (sharded, gradient) in shards.parameters.iter().zip(gradients) {
            let Some(gradient) = gradient else { continue };
            let weight = weights.remove(&sharded.name).expect("the weights of every trained parameter");
            let (parameter, own) = (sharded.parameter(), sharded.range_of(rank));
            let rule = self.rules.rule_of(parameter);
            let (slots, state) = match self.state.remove(&sharded.name) {
                Some(OptimizerState { slots, state }) => (slots, Some(state)),
                None => (rule.slots(parameter), None),
            };
            let mut new_state = OptimizerState { slots, state: Vec::new() };
            if !own.is_empty() {
                let size = own.len();
                let device = weight.device();
                // A copy that the update may overwrite, because the network still holds the weight.
                let weight = match flex_f32(&weight) {
                    Some(weight) => tensor_from_vec(f32s(&weight)[own].to_vec(), [size], &device),
                    None => weight.slice([own]),
                };
                let gradient = tensor_from_vec(gradient, [size], &device);
                let (weight, state) = rule.update(step, TrainedParam { parameter, weight, gradient, state });
                match flex_f32(&weight) {
                    Some(weight) => updated.extend_from_slice(f32s(&weight)),
                    None => updated.extend(to_host(weight)),
                }
                new_state.state = state;
            }
            // A parameter without elements here is stored too: all ranks know which parameters have a state.
            if !new_state.slots.is_empty() {
                self.state.insert(sharded.name.clone(), new_state);
            }
        }
        updated
    }
}

/// Gives a network the weights that all ranks have updated. `own` has the concatenated weights of this rank; `has_gradient` tells
/// for each parameter if it was updated. Collective.
pub(crate) fn gather_weights(net: Decoder, own: Vec<f32>, shards: &Shards, has_gradient: &[bool], ranks: &Ranks) -> Decoder {
    let updated = || shards.parameters.iter().zip(has_gradient).filter(|(_, has)| **has).map(|(sharded, _)| sharded);
    let count = |rank: usize| 4 * updated().map(|sharded| sharded.range_of(rank).len()).sum::<usize>();
    let counts: Vec<usize> = (0..ranks.size()).map(count).collect();
    let mut all = Bytes::from_elems(vec![0f32; counts.iter().sum::<usize>() / 4]);
    ranks.group().all_gather(&Bytes::from_elems(own), &mut all, &counts);
    let mut end = 0;
    let place = |size: usize| {
        end += size;
        end - size..end
    };
    let places = updated().map(|sharded| sharded.size()).map(place);
    let places = updated().map(|sharded| sharded.name.as_str()).zip(places).collect();
    let values = all.try_into_vec().unwrap_or_else(|_| unreachable!("they were f32s"));
    net.map(&mut ReplaceWeights { values, places, file_tensors: &shards.file_tensors, path: Vec::new() })
}

/// Returns the weights of the updated tensors, flat.
fn weights_of(net: &Decoder, shards: &Shards) -> BTreeMap<String, Tensor<1>> {
    let (mut weights, mut joined) = (BTreeMap::new(), BTreeMap::new());
    for (name, weight) in weights_of_parameters(net) {
        let Some(tensor) = shards.file_tensors.tensor(&name) else {
            weights.insert(name, weight);
            continue;
        };
        let size = shards.find(tensor).map_or(0, |sharded| sharded.size());
        let (_, values) = joined.entry(tensor.to_owned()).or_insert_with(|| (weight.device(), vec![0.0; size]));
        shards.file_tensors.put(&name, &to_host(weight), values);
    }
    weights.extend(joined.into_iter().map(|(name, (device, values))| {
        let size = values.len();
        (name, tensor_from_vec(values, [size], &device))
    }));
    weights
}

/// Returns the weights of the trained parameters, flat.
pub(super) fn weights_of_parameters(net: &Decoder) -> BTreeMap<String, Tensor<1>> {
    struct Visitor(Vec<String>, BTreeMap<String, Tensor<1>>);
    impl ModuleVisitor for Visitor {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let weight = param.val();
            if weight.is_require_grad() {
                self.1.insert(self.0.join("."), weight.inner().flatten(0, D - 1));
            }
        }
        fn enter_module(&mut self, name: &str, _: &str) {
            self.0.push(name.to_owned());
        }
        fn exit_module(&mut self, _: &str, _: &str) {
            self.0.pop();
        }
    }
    let mut visitor = Visitor(Vec::new(), BTreeMap::new());
    net.visit(&mut visitor);
    visitor.1
}

/// Replaces weights by given ones.
struct ReplaceWeights<'a> {
    values: Vec<f32>,
    /// Ranges of the values of each tensor.
    places: BTreeMap<&'a str, Range<usize>>,
    file_tensors: &'a FileTensors,
    path: Vec<String>,
}

impl ModuleMapper for ReplaceWeights<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let name = self.path.join(".");
        let tensor = self.file_tensors.tensor(&name);
        let Some(place) = self.places.get(tensor.unwrap_or(&name)) else { return param };
        let (id, weight, mapper) = param.consume();
        let weight = weight.inner();
        let (shape, device) = (weight.dims(), weight.device());
        drop(weight);
        let values = &self.values[place.clone()];
        let values = if tensor.is_some() { self.file_tensors.take(&name, values) } else { values.to_vec() };
        let weight = tensor_from_vec(values, shape, &device);
        Param::from_mapped_value(id, Tensor::from_inner(weight).require_grad(), mapper)
    }
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }
    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }
}
