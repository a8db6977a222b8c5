//! The model families that this build can train. Each turns its config.json into the configuration of the one shared decoder.

mod gemma;
mod gemma2;
mod gpt2;
mod gpt_neox;
mod llama;
mod mistral;
mod qwen2;
mod qwen3;

use anyhow::Result;

use super::config::DecoderConfig;
use super::hf_config::HfReader;

/// A model family: families differ in the files that describe them, not in the decoder.
pub struct Family {
    /// `model_type` of config.json.
    pub model_type: &'static str,
    /// The beginning of the names of its classes in transformers.
    pub class: &'static str,
    pub doc: &'static str,
    pub read: fn(&HfReader) -> Result<DecoderConfig>,
}

/// Every family. To add one, write a file with its `FAMILY`, and add a line here.
pub static FAMILIES: &[Family] = &[
    llama::FAMILY,
    mistral::FAMILY,
    qwen2::FAMILY,
    qwen3::FAMILY,
    gemma::FAMILY,
    gemma2::FAMILY,
    gpt_neox::FAMILY,
    gpt2::FAMILY,
];
