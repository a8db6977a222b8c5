//! The inputs of a stage, which are read before the weights: the tokenizer, the examples, and the resulting number of steps.

use std::path::PathBuf;

use anyhow::{Context, Result};

use burnish_config::schema::StageConfig;
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

/// Returns the shape of the language model in `model.path`.
///
/// # Errors
/// If config.json does not describe a language model.
pub fn decoder(config: &impl StageConfig) -> Result<DecoderConfig> {
    let decoder = || HfConfig::read(config.stage().model.path.as_path())?.decoder();
    decoder().context("model.path")
}
