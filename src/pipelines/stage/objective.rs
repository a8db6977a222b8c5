//! What a stage trains on, and by which loss.
//!
//! A batch is cut into slices, and each rank passes over its own: [`whole`](Objective::whole) works out what they must know of the
//! batch, [`pass`](Objective::pass) finds sums or numbers of rows in one, [`measured`](Objective::measured) makes the loss and the
//! metrics of what all found. So they depend on the slices at most, never on the ranks.

use std::path::Path;

use anyhow::{Context, Result};
use burn::tensor::Device;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::batch::{Batch, Measured};
use super::inputs::{Inputs, Rows, decoder};
use crate::job::memory_estimate::MemoryEstimate;
use crate::job::models::model_init;
use crate::job::unused_options::UnusedOption;
use burnish_config::schema::StageConfig;
use burnish_data::Tokenizer;
use burnish_distributed::Ranks;
use burnish_model::{CausalLm, DecoderConfig, Gradients, Sequence};

/// A stage: its settings, its examples, and the loss of a batch of them.
pub trait Objective: Sized {
    type Config: StageConfig;
    /// One row, as token ids: a text, a pair of answers, … A batch has whole examples, and so has a micro-batch.
    type Example: Clone;
    /// What a pass over a slice must know of the whole batch: the sum of its weights, KTO's z, …
    type Whole;
    /// What a pass finds in a slice: sums, or the numbers of each of its rows.
    type Found: Serialize + DeserializeOwned;

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

    /// Builds what the loss needs beside the model, such as a reference. `model`: as it is before the first step. All `ranks` come
    /// here together; what is written is rank 0's to write.
    ///
    /// # Errors
    /// If something cannot be read or does not fit, on all ranks.
    fn build(config: &Self::Config, inputs: &Inputs<Self::Example>, model: &CausalLm, ranks: &Ranks) -> Result<Self>;

    /// Works out what the passes over the slices of a batch must know of all of it, by passes without gradient if need be. All
    /// `ranks` come here together, and all return the same.
    fn whole(&self, batch: &Batch<Self::Example>, model: &CausalLm, ranks: &Ranks) -> Self::Whole;

    /// The pass of a single rank over a slice, which may be empty. With `gradients`, which a step gives and a validation does not, the
    /// model is [`trainable`](CausalLm::trainable), and the part of the slice in d loss / d parameters is added to them, the loss
    /// being that of the whole batch. Nothing depends on micro-batches.
    fn pass(
        &self,
        batch: &Batch<Self::Example>,
        whole: &Self::Whole,
        slice: &[usize],
        model: &CausalLm,
        gradients: Option<&mut Gradients>,
    ) -> Self::Found;

    /// The loss of a batch and its metrics, from what was found in its slices, in their order.
    fn measured(&self, batch: &Batch<Self::Example>, whole: Self::Whole, found: Vec<Self::Found>) -> Measured;

    /// Says in the log what a step or a validation shows that the user should know, once.
    fn warn(&self, _batch: &Batch<Self::Example>, _measured: &Measured) {}

    /// Adds what the stage holds beside the model that is trained, such as a reference.
    ///
    /// # Errors
    /// A model that cannot be read.
    fn memory(_config: &Self::Config, _memory: &mut MemoryEstimate) -> Result<()> {
        Ok(())
    }

    /// A model beside the one that is trained that passes over every batch before it, with its name.
    ///
    /// # Errors
    /// A model that cannot be read.
    fn beside(_config: &Self::Config) -> Result<Option<(&'static str, DecoderConfig)>> {
        Ok(None)
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
