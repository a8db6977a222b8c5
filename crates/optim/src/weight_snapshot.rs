//! The size of an update: the trained weights before it, compared with those after it, layer by layer.

use std::collections::BTreeMap;

use serde::Serialize;

use super::learner::Learner;
use super::sharded_update::weights_of_parameters;
use burn::tensor::Tensor;
use burnish_model::ops::{f32s, flex_f32, to_host};

/// The trained parameters before an update, or evenly spread elements of each.
pub struct WeightSnapshot(BTreeMap<String, SpreadElements>);

/// Every `stride`-th element of a parameter, from the first one on.
struct SpreadElements {
    values: Vec<f32>,
    stride: usize,
}

/// Number of elements of a parameter that a sample has at most.
const MOST: usize = 4096;

/// The size of an update in one layer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LayerChange {
    /// `layers.3` for all parameters of a block, otherwise the name of the parameter.
    pub layer: String,
    /// ‖ΔW‖ of the trained parameters of the layer.
    #[serde(with = "burnish_util::json_number")]
    pub change: f64,
    /// ‖W‖ before the update.
    #[serde(with = "burnish_util::json_number")]
    pub weights: f64,
}

impl Learner {
    /// Copies the trained parameters.
    pub fn snapshot(&self) -> WeightSnapshot {
        let weights = weights_of_parameters(&self.model.net).into_iter();
        WeightSnapshot(weights.map(|(name, weight)| (name, SpreadElements { values: to_host(weight), stride: 1 })).collect())
    }

    /// Copies up to 4,096 evenly spread elements of each trained parameter; `None` on a GPU, where this would wait for the device.
    /// The size of an update that follows from them is exact for smaller parameters, and an estimate for larger ones.
    pub fn sample(&self) -> Option<WeightSnapshot> {
        let sampled = |(name, weight): (String, Tensor<1>)| {
            let stride = stride(weight.dims()[0]);
            Some((name, SpreadElements { values: spread(&weight, stride)?, stride }))
        };
        weights_of_parameters(&self.model.net).into_iter().map(sampled).collect::<Option<_>>().map(WeightSnapshot)
    }
}

impl WeightSnapshot {
    /// Returns the size of all updates since the copy, by layer: the embedding, the blocks in order, then the rest.
    pub fn changes(&self, learner: &Learner) -> Vec<LayerChange> {
        let mut layers: BTreeMap<(usize, usize, String), [f64; 2]> = BTreeMap::new();
        for (name, weight) in weights_of_parameters(&learner.model.net) {
            let Some(before) = self.0.get(&name) else { continue };
            let sums = layers.entry(place(&name)).or_default();
            let SpreadElements { values: before, stride } = before;
            let now = if *stride == 1 { Some(to_host(weight)) } else { spread(&weight, *stride) };
            let mut own = [0.0; 2];
            for (before, now) in before.iter().zip(now.unwrap_or_default()) {
                own[0] += (f64::from(now) - f64::from(*before)).powi(2);
                own[1] += f64::from(*before).powi(2);
            }
            sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += own * *stride as f64);
        }
        let change = |((_, _, layer), [change, weights]): (_, [f64; 2])| LayerChange {
            layer,
            change: change.sqrt(),
            weights: weights.sqrt(),
        };
        layers.into_iter().map(change).collect()
    }
}

/// Returns the distance between elements of a sample. It is odd: it shares no factor with a width that is a power of two, so that all
/// columns have their turn.
fn stride(elements: usize) -> usize {
    elements.div_ceil(MOST) | 1
}

/// Returns every `stride`-th element of a parameter on the CPU, and nothing on a GPU.
fn spread(weight: &Tensor<1>, stride: usize) -> Option<Vec<f32>> {
    Some(f32s(&flex_f32(weight)?).iter().copied().step_by(stride).collect())
}

/// Returns ‖ΔW‖ / ‖W‖ of all parameters, and of the layer where it is largest. A layer of zeros does not count.
pub fn relative_changes(layers: &[LayerChange]) -> (f64, f64) {
    let norm = |of: fn(&LayerChange) -> f64| layers.iter().map(|layer| of(layer).powi(2)).sum::<f64>().sqrt();
    let of_layers = layers.iter().filter(|layer| layer.weights > 0.0).map(|layer| layer.change / layer.weights);
    (norm(|layer| layer.change) / norm(|layer| layer.weights), of_layers.fold(0.0, f64::max))
}

/// Returns the layer of a parameter, behind the keys by which layers are sorted.
fn place(parameter: &str) -> (usize, usize, String) {
    let mut parts = parameter.split('.').skip_while(|part| *part != "layers");
    match parts.nth(1).and_then(|index| index.parse().ok()) {
        Some(index) => (1, index, format!("layers.{index}")),
        None if parameter.contains("embed") => (0, 0, parameter.to_owned()),
        None => (2, 0, parameter.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{LayerChange, MOST, place, relative_changes, stride};

    #[test]
    fn a_sample_has_all_columns() {
        for width in [64, 896, 2048, 4096] {
            let elements = width * width;
            let taken: Vec<usize> = (0..elements).step_by(stride(elements)).collect();
            let columns: BTreeSet<usize> = taken.iter().map(|element| element % width).collect();
            assert!(
                taken.len() <= MOST && columns.len() >= width.min(taken.len()) * 9 / 10,
                "{width}: {} columns",
                columns.len()
            );
        }
    }

    #[test]
    fn changes_are_relative_to_the_weights() {
        let layer = |change, weights| LayerChange { layer: String::new(), change, weights };
        assert_eq!(relative_changes(&[layer(3.0, 30.0), layer(4.0, 40.0), layer(0.0, 0.0)]), (0.1, 0.1));
        assert_eq!(relative_changes(&[layer(0.0, 3.0), layer(2.0, 4.0)]), (0.4, 0.5));
    }

    #[test]
    fn layers_are_sorted_as_the_model_passes_them() {
        let names = ["lm_head.weight", "model.layers.10.a", "model.layers.2.b", "model.embed_tokens.weight", "model.layers.2.c"];
        let mut places = names.map(place);
        places.sort();
        let layers = places.map(|(_, _, layer)| layer);
        assert_eq!(layers, ["model.embed_tokens.weight", "layers.2", "layers.2", "layers.10", "lm_head.weight"]);
    }
}
