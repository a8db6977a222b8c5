//! The size of an update: the trained weights before it, compared with those after it, layer by layer.

use std::collections::BTreeMap;

use serde::Serialize;

use super::learner::Learner;
use super::sharded_update::weights_of_parameters;
use burnish_model::ops::to_host;

/// The trained parameters before an update.
pub struct WeightSnapshot(BTreeMap<String, Vec<f32>>);

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
        WeightSnapshot(weights.map(|(name, weight)| (name, to_host(weight))).collect())
    }
}

impl WeightSnapshot {
    /// Returns the size of all updates since the copy, by layer: the embedding, the blocks in order, then the rest.
    pub fn changes(&self, learner: &Learner) -> Vec<LayerChange> {
        let mut layers: BTreeMap<(usize, usize, String), [f64; 2]> = BTreeMap::new();
        for (name, weight) in weights_of_parameters(&learner.model.net) {
            let Some(before) = self.0.get(&name) else { continue };
            let sums = layers.entry(place(&name)).or_default();
            for (before, now) in before.iter().zip(to_host(weight)) {
                sums[0] += (f64::from(now) - f64::from(*before)).powi(2);
                sums[1] += f64::from(*before).powi(2);
            }
        }
        let change = |((_, _, layer), [change, weights]): (_, [f64; 2])| LayerChange {
            layer,
            change: change.sqrt(),
            weights: weights.sqrt(),
        };
        layers.into_iter().map(change).collect()
    }
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
    use super::place;

    #[test]
    fn layers_are_sorted_as_the_model_passes_them() {
        let names = ["lm_head.weight", "model.layers.10.a", "model.layers.2.b", "model.embed_tokens.weight", "model.layers.2.c"];
        let mut places = names.map(place);
        places.sort();
        let layers = places.map(|(_, _, layer)| layer);
        assert_eq!(layers, ["model.embed_tokens.weight", "layers.2", "layers.2", "layers.10", "lm_head.weight"]);
    }
}
