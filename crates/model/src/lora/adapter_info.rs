//! The properties of the adapter that a model has.

use super::targets::LoraTarget;

/// A model's adapter, without its values.
#[derive(Clone, Debug, PartialEq)]
pub struct AdapterInfo {
    pub rank: usize,
    pub alpha: f64,
    /// The folder of the frozen weights.
    pub base: String,
    /// The adapted projections, in the order of the network.
    pub targets: Vec<LoraTarget>,
}

impl AdapterInfo {
    pub fn num_parameters(&self) -> usize {
        self.targets.iter().map(|target| self.rank * (target.input + target.output)).sum()
    }
}
