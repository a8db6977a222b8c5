//! A setting that names a model or data: a path, or a name on the Hub.

use super::types::Location;

/// A setting that names a model or data.
pub struct LocationSetting<'a> {
    /// The dotted key; of an item of a list, with its index.
    pub key: String,
    pub kind: LocationKind,
    pub location: &'a mut Location,
}

/// The kind that a setting names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocationKind {
    /// A model, of which the weights are read where `weights` is true.
    Model {
        weights: bool,
    },
    Tokenizer,
    /// A LoRA adapter.
    Adapter,
    TrainingData,
    ValidationData,
    /// Data that is read once.
    Data,
}
