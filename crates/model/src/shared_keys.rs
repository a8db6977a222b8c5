//! Keys and values that later layers read again (Gemma 4). A decode step writes them once more to the cache of
//! the layer that projects them, with the same values.

use std::collections::BTreeMap;

use burn::tensor::{Gradients, Tensor};

use super::config::DecoderConfig;

/// Keys and values [n, kv heads, d], or their gradients, by the layer that projects them.
#[derive(Clone, Default)]
pub(crate) struct SharedKeys(BTreeMap<usize, [Tensor<3>; 2]>);

impl SharedKeys {
    /// Keeps the keys and values of a layer if a later layer reads them.
    pub(crate) fn keep(&mut self, layer: usize, kv: [&Tensor<3>; 2], config: &DecoderConfig) {
        if config.is_source(layer) {
            self.0.insert(layer, kv.map(Clone::clone));
        }
    }

    /// The keys and values of an earlier layer.
    ///
    /// # Panics
    /// If the layer has not run.
    pub(crate) fn of(&self, layer: usize) -> [Tensor<3>; 2] {
        self.0.get(&layer).expect("a layer that shares its keys runs first").clone()
    }

    /// The keys and values that a layer reads, as leaves of a graph.
    pub(crate) fn leaves_for(&self, layer: usize, config: &DecoderConfig) -> Self {
        let source = config.attention(layer).source;
        Self(source.map(|source| (source, self.of(source).map(|x| Tensor::from_inner(x).require_grad()))).into_iter().collect())
    }

    /// The sum of all elements, each times its gradient; `None` without keys that have gradients.
    pub(crate) fn dot(&self, gradients: &Self) -> Option<Tensor<1>> {
        let products = self.0.iter().filter_map(|(layer, kv)| {
            let pairs = kv.iter().cloned().zip(gradients.0.get(layer)?.clone());
            pairs.map(|(x, d)| (x * Tensor::from_inner(d)).sum()).reduce(|a, b| a + b)
        });
        products.reduce(|a, b| a + b)
    }

    /// Adds the gradients of leaves in a backward pass.
    pub(crate) fn add_gradients(&mut self, leaves: &Self, graph: &mut Gradients) {
        for (layer, kv) in &leaves.0 {
            let [k, v] = [0, 1].map(|i| kv[i].grad_remove(graph).expect("keys and values are leaves of this graph"));
            let sum = match self.0.remove(layer) {
                Some([old_k, old_v]) => [old_k + k, old_v + v],
                None => [k, v],
            };
            self.0.insert(*layer, sum);
        }
    }
}
