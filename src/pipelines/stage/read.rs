//! Reads the inputs of a stage, and checks that its model can take them.

use anyhow::{Context, Result, anyhow};

use super::inputs::{Inputs, Rows};
use super::objective::Objective;
use crate::config::schema::StageConfig;
use crate::data::{Sampler, Tokenizer, take_samples};
use crate::job::models::check_model;
use crate::job::template_date::dated;
use crate::model::Sequence;

/// Reads the inputs, and checks that the model described by config.json can take them.
pub(super) fn read<O: Objective>(config: &O::Config) -> Result<Inputs<O::Example>> {
    let keys = config.stage();
    let folder = keys.model.tokenizer_folder();
    let tokenizer = Tokenizer::load_with_template(folder.as_path(), keys.model.custom_chat_template.as_deref())
        .context("model.tokenizer_path (by default model.path)")?
        .with_ends_of(keys.model.path.as_path())
        .context("model.path")?;
    let tokenizer = dated(tokenizer, keys.data.chat_template_date, Some(&keys.trainer.resume()))?;
    let (train, sets) = training::<O>(config, &tokenizer)?;
    let val = validation::<O>(config, &tokenizer)?;
    if keys.data.val_files.is_none() && !keys.trainer.test_freq.is_never() {
        tracing::warn!("ignored: trainer.test_freq: there is no validation, data.val_files is null");
    }
    let longest = train.iter().chain(&val).map(longest::<O>).max().unwrap_or(0);
    check_model(&O::decoder(config)?, &tokenizer, longest, "data.max_length")
        .with_context(|| format!("the model in {} and the tokenizer in {folder}", keys.model.path))?;
    let seed = keys.data.seed.unwrap_or(keys.trainer.seed);
    let mut sampler =
        Sampler::new(train.len(), keys.data.train_batch_size, keys.data.shuffle, seed, true).context("data.train_batch_size")?;
    if let Some(weights) = keys.data.train_weights {
        let sets: Vec<(usize, f64)> = sets.into_iter().zip(weights.iter().copied()).collect();
        let named = |(set, why): (usize, String)| anyhow!("data.train_weights: {}: {why}", keys.data.train_files[set]);
        sampler = sampler.with_shares(&sets).map_err(named)?;
    }
    let total_steps = match keys.trainer.total_training_steps {
        Some(steps) => steps as u64,
        None => sampler.batches_per_epoch().saturating_mul(keys.trainer.total_epochs as u64),
    };
    Ok(Inputs { tokenizer, train, val, sampler, total_steps })
}

/// The number of tokens of the longest sequence of an example.
pub(super) fn longest<O: Objective>(example: &O::Example) -> usize {
    O::sequences(example).iter().map(Sequence::len).max().unwrap_or(0)
}

/// The training examples, and how many of them come from each of `data.train_files`, where these have weights.
fn training<O: Objective>(config: &O::Config, tokenizer: &Tokenizer) -> Result<(Vec<O::Example>, Vec<usize>)> {
    let keys = config.stage();
    let data = keys.data;
    let read = |files| O::read(config, tokenizer, &Rows { files, training: true }).context("data.train_files");
    // Sets with weights are read apart: packing joins no rows of different sets.
    let sets = match data.train_weights {
        None => vec![read(data.train_files.paths())?],
        Some(_) => data.train_files.iter().map(|file| read(file.paths())).collect::<Result<_>>()?,
    };
    let count = sets.len();
    let examples: Vec<(usize, O::Example)> = sets
        .into_iter()
        .enumerate()
        .flat_map(|(set, examples)| examples.into_iter().map(move |example| (set, example)))
        .collect();
    let seed = data.seed.unwrap_or(keys.trainer.seed);
    let examples = take_samples(examples, usize::try_from(data.train_max_samples).ok(), data.shuffle, seed);
    let sizes = (0..count).map(|set| examples.iter().filter(|(of, _)| *of == set).count()).collect();
    Ok((examples.into_iter().map(|(_, example)| example).collect(), sizes))
}

/// The validation examples; empty if `data.val_files` is null.
fn validation<O: Objective>(config: &O::Config, tokenizer: &Tokenizer) -> Result<Vec<O::Example>> {
    let keys = config.stage();
    let Some(files) = keys.data.val_files else { return Ok(Vec::new()) };
    let examples = O::read(config, tokenizer, &Rows { files: files.paths(), training: false }).context("data.val_files")?;
    let seed = keys.data.seed.unwrap_or(keys.trainer.seed);
    Ok(take_samples(examples, usize::try_from(keys.data.val_max_samples).ok(), false, seed))
}
