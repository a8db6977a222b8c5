//! A setting that names a model or data, a path or a name on the Hub; or a file of code or tools, a path.

use super::types::Location;

/// A setting that names a model, data or a file.
pub struct LocationSetting<'a> {
    /// The dotted key, with the index of an item of a list.
    pub key: String,
    pub kind: LocationKind,
    pub location: &'a mut Location,
}

/// The kind of model, data or file that a setting names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocationKind {
    /// A model. Its weights are read if `weights` is true.
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
    /// A file of Python code, or a YAML file of tools, users or loops.
    File,
}
