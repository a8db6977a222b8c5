//! The inputs of a stage, which are read before the weights: the tokenizer, the examples, and the resulting number of steps.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::job::lora_settings;
use burnish_config::schema::{StageConfig, StageModelConfig};
use burnish_data::{RowSelection, Sampler, Tokenizer};
use burnish_model::DecoderConfig;
use burnish_model::hf_config::HfConfig;

/// The inputs of a stage.
pub struct StageInputs<E> {
    pub tokenizer: Tokenizer,
    pub train: Vec<E>,
    /// The validation examples; empty if `data.val_files` is null.
    pub val: Vec<E>,
    pub sampler: Sampler,
    pub total_steps: u64,
}

/// The files whose rows become examples.
pub struct RowFiles {
    pub files: Vec<PathBuf>,
    pub training: bool,
    pub reading: RowSelection,
}

/// Reads the model's config.json, with `override_config`.
///
/// # Errors
/// If it cannot be read.
pub fn hf_config(model: &StageModelConfig) -> Result<HfConfig> {
    lora_settings::read_config(&model.lora(), model.path.as_path(), model.override_config.clone()).context("model.path")
}

/// Returns the shape of the language model in `model.path`.
///
/// # Errors
/// If config.json does not describe a language model.
pub fn decoder(config: &impl StageConfig) -> Result<DecoderConfig> {
    hf_config(config.stage().model)?.decoder().context("model.path")
}
