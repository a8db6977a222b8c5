//! The entry of a family of models.

use anyhow::Result;

use crate::config::DecoderConfig;
use crate::hf_reader::HfReader;

/// A model family: families differ in the files that describe them, not in the decoder.
pub struct Family {
    /// `model_type` of config.json.
    pub model_type: &'static str,
    /// The beginning of the names of its classes in transformers.
    pub class: &'static str,
    pub doc: &'static str,
    pub read: fn(&HfReader) -> Result<DecoderConfig>,
}
