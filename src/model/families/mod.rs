//! The families of models this build can train: what their config.json says of the one decoder they share.

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

/// A family: the files that describe it differ, the decoder does not.
pub struct Family {
    /// `model_type` of config.json.
    pub model_type: &'static str,
    /// What the names of its classes in transformers begin with.
    pub class: &'static str,
    pub doc: &'static str,
    pub read: fn(&HfReader) -> Result<DecoderConfig>,
}

/// To add a family: a file with its `FAMILY`, and a line here.
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
