//! The entry of a family of models.

use anyhow::Result;

use crate::config::DecoderConfig;
use crate::hf_reader::HfReader;

/// A model family. Families differ in the files that describe them, not in the decoder.
pub struct Family {
    /// `model_type` of config.json.
    pub model_type: &'static str,
    /// The prefix of its class names in transformers.
    pub class: &'static str,
    pub doc: &'static str,
    pub read: fn(&HfReader) -> Result<DecoderConfig>,
}
