//! The interface of a stage: its examples and its loss.
//!
//! A batch is cut into slices, and each rank passes over its slices. [`batch_totals`](Objective::whole) computes facts about the whole
//! batch, [`pass`](Objective::pass) returns sums or row statistics of one slice, and [`measured`](Objective::measured) turns the
//! results of all slices into the loss and the metrics. These depend at most on the slices, never on the ranks.

use std::path::Path;

use anyhow::{Context, Result};
use burn::tensor::Device;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::batch::{Measured, StageBatch};
use super::example::StageExample;
use super::inputs::{RowFiles, StageInputs, decoder, hf_config};
use crate::job::memory_estimate::MemoryEstimate;
use crate::job::models::model_init;
use crate::job::unused_options::UnusedOption;
use burnish_config::schema::StageConfig;
use burnish_data::Tokenizer;
use burnish_distributed::Ranks;
use burnish_model::{CausalLm, DecoderConfig, Gradients};

/// A stage: its settings, its examples, and the loss of a batch of them.
pub trait Objective: Sized {
    type Config: StageConfig;
    type Example: StageExample;
    /// Facts about the whole batch that a pass over a slice needs: the sum of its weights, KTO's z, …
    type BatchTotals;
    /// The result of a pass over a slice: sums, or statistics of each row.
    type SliceResult: Serialize + DeserializeOwned;

    /// Returns the stage's own options without effect.
    ///
    /// # Errors
    /// If a name is not in its registry.
    fn unused_options(config: &Self::Config) -> Result<Vec<UnusedOption>>;

    /// Returns true if the stage itself draws random numbers from `trainer.seed`.
    ///
    /// # Errors
    /// If config.json cannot be read.
    fn draws(_config: &Self::Config) -> Result<bool> {
        Ok(false)
    }

    /// Reads and tokenizes rows. A row that is left out is counted and named in the log.
    ///
    /// # Errors
    /// If a file or row cannot be read (the message names it), or if there are no rows.
    fn read(config: &Self::Config, tokenizer: &Tokenizer, rows: &RowFiles) -> Result<Vec<Self::Example>>;

    /// Returns the shape of the model, from its config.json.
    ///
    /// # Errors
    /// If the stage cannot train the model.
    fn decoder(config: &Self::Config) -> Result<DecoderConfig> {
        decoder(config)
    }

    /// Returns the shape of the model in the files of its folder, which differs if a head is replaced.
    ///
    /// # Errors
    /// The errors of [`decoder`](Self::decoder).
    fn decoder_in_files(config: &Self::Config) -> Result<DecoderConfig> {
        Self::decoder(config)
    }

    /// Loads the initial model, without adapters.
    ///
    /// # Errors
    /// If weights cannot be read or do not fit config.json.
    fn model(config: &Self::Config, device: &Device) -> Result<CausalLm> {
        let keys = config.stage();
        let init = model_init(keys.model.init, keys.trainer.seed);
        CausalLm::load_as(keys.model.path.as_path(), hf_config(keys.model)?, init, device).context("model.path")
    }

    /// Returns the loaded model, completed by facts from the inputs.
    ///
    /// # Errors
    /// If a file cannot be read or does not fit.
    fn prepared(_config: &Self::Config, _inputs: &StageInputs<Self::Example>, model: CausalLm) -> Result<CausalLm> {
        Ok(model)
    }

    /// Builds the further parts of the loss, such as a reference. `model`: the initial model. Collective; only rank 0
    /// writes files.
    ///
    /// # Errors
    /// If a file cannot be read or does not fit, on all ranks.
    fn build(config: &Self::Config, inputs: &StageInputs<Self::Example>, model: &CausalLm, ranks: &Ranks) -> Result<Self>;

    /// Computes the facts about the whole batch that passes over its slices need, by passes without gradient if necessary.
    /// Collective; all ranks return the same value.
    fn batch_totals(&self, batch: &StageBatch<Self::Example>, model: &CausalLm, ranks: &Ranks) -> Self::BatchTotals;

    /// Passes over one slice, which may be empty, on a single rank. A step gives `gradients`, a validation does not. With
    /// `gradients` the model is [`trainable`](CausalLm::trainable), and the slice's part of d loss / d parameters is added to
    /// them, where loss is the loss of the whole batch. The result does not depend on micro-batches.
    fn pass(
        &self,
        batch: &StageBatch<Self::Example>,
        batch_totals: &Self::BatchTotals,
        slice: &[usize],
        model: &CausalLm,
        gradients: Option<&mut Gradients>,
    ) -> Self::SliceResult;

    /// Returns the loss of a batch and its metrics, from the results of its slices in their order.
    fn measured(
        &self,
        batch: &StageBatch<Self::Example>,
        batch_totals: Self::BatchTotals,
        results: Vec<Self::SliceResult>,
    ) -> Measured;

    /// Warns once about a result of a step or a validation that concerns the user.
    fn warn(&self, _batch: &StageBatch<Self::Example>, _measured: &Measured) {}

    /// Adds the memory of further models of the stage, such as a reference.
    ///
    /// # Errors
    /// If a model cannot be read.
    fn memory(_config: &Self::Config, _memory: &mut MemoryEstimate) -> Result<()> {
        Ok(())
    }

    /// Completes the folder of the model and its tokenizer in a checkpoint.
    ///
    /// # Errors
    /// If a file cannot be written.
    fn saved(&self, _folder: &Path) -> Result<()> {
        Ok(())
    }

    /// Changes the settings so that the first steps can be measured: nothing is written, and files about all rows are not read.
    /// Returns true if the steps then need no other training rows than their own, and names the parts of a run that are left out.
    fn for_measuring(_config: &mut Self::Config) -> (bool, Vec<&'static str>) {
        (true, vec![])
    }

    /// Returns further lines of a dry run: (name, text).
    fn describe(_config: &Self::Config, _inputs: &StageInputs<Self::Example>) -> Result<Vec<(&'static str, String)>> {
        Ok(vec![])
    }
}
