//! What a stage trains on, and by which loss.

use std::path::Path;

use anyhow::{Context, Result};
use burn::tensor::Device;

use super::batch::{Batch, Measured};
use super::inputs::{Inputs, Rows, decoder};
use crate::config::schema::StageConfig;
use crate::data::Tokenizer;
use crate::job::memory_estimate::MemoryEstimate;
use crate::job::models::model_init;
use crate::job::unused_options::UnusedOption;
use crate::model::{CausalLm, DecoderConfig, Gradients, Sequence};

/// A stage: its settings, its examples, and the loss of a batch of them.
pub trait Objective: Sized {
    type Config: StageConfig;
    /// One row, as token ids: a text, a pair of answers, … A batch has whole examples, and so has a micro-batch.
    type Example: Clone;

    /// The options of the stage's own that have no effect beside the others.
    ///
    /// # Errors
    /// If a name is in no registry.
    fn unused_options(config: &Self::Config) -> Result<Vec<UnusedOption>>;

    /// True if the stage draws random numbers of its own from `trainer.seed`.
    ///
    /// # Errors
    /// A config.json that cannot be read.
    fn draws(_config: &Self::Config) -> Result<bool> {
        Ok(false)
    }

    /// Reads and tokenizes rows. A row that is left out is counted and named in the log.
    ///
    /// # Errors
    /// A file or row that cannot be read, with its name; no rows.
    fn read(config: &Self::Config, tokenizer: &Tokenizer, rows: &Rows) -> Result<Vec<Self::Example>>;

    /// The sequences of an example, as they go through the model: the response is what is predicted.
    fn sequences(example: &Self::Example) -> Vec<Sequence<'_>>;

    /// The numbers of an example, beside its ids, that the loss reads: weights, labels, a margin.
    fn targets(_example: &Self::Example) -> Vec<f64> {
        vec![]
    }

    /// The shape of the model, from its config.json.
    ///
    /// # Errors
    /// A model that the stage cannot train.
    fn decoder(config: &Self::Config) -> Result<DecoderConfig> {
        decoder(config)
    }

    /// The shape of the model that the files in its folder hold: another one where a head is replaced.
    ///
    /// # Errors
    /// The errors of [`decoder`](Self::decoder).
    fn decoder_in_files(config: &Self::Config) -> Result<DecoderConfig> {
        Self::decoder(config)
    }

    /// Loads the model as it is before the first step, without adapters.
    ///
    /// # Errors
    /// Weights that cannot be read or do not fit config.json.
    fn model(config: &Self::Config, device: &Device) -> Result<CausalLm> {
        let keys = config.stage();
        let init = model_init(keys.model.init, keys.trainer.seed);
        CausalLm::load(keys.model.path.as_path(), init, device).context("model.path")
    }

    /// Returns the loaded model with what only the inputs tell of it.
    ///
    /// # Errors
    /// If something cannot be read or does not fit.
    fn prepared(_config: &Self::Config, _inputs: &Inputs<Self::Example>, model: CausalLm) -> Result<CausalLm> {
        Ok(model)
    }

    /// Builds what the loss needs beside the model, such as a reference. `model`: as it is before the first step.
    ///
    /// # Errors
    /// If something cannot be read or does not fit.
    fn build(config: &Self::Config, inputs: &Inputs<Self::Example>, model: &CausalLm) -> Result<Self>;

    /// The loss of a batch and its metrics. With `gradients`, which a step gives and a validation does not, the model is
    /// [`trainable`](CausalLm::trainable), and d loss / d parameters are added to them. Means are over the whole batch, so that
    /// nothing depends on its micro-batches.
    fn pass(&self, batch: &Batch<Self::Example>, model: &CausalLm, gradients: Option<&mut Gradients>) -> Measured;

    /// Adds what the stage holds beside the model that is trained, such as a reference.
    ///
    /// # Errors
    /// A model that cannot be read.
    fn memory(_config: &Self::Config, _memory: &mut MemoryEstimate) -> Result<()> {
        Ok(())
    }

    /// Completes the folder of a checkpoint that holds the model and its tokenizer.
    ///
    /// # Errors
    /// A file cannot be written.
    fn saved(&self, _folder: &Path) -> Result<()> {
        Ok(())
    }

    /// More lines of a dry run: (name, text).
    fn describe(_config: &Self::Config, _inputs: &Inputs<Self::Example>) -> Result<Vec<(&'static str, String)>> {
        Ok(vec![])
    }
}
