//! Reads the inputs of a stage, and checks that its model can take them.

use anyhow::{Context, Result};

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
    let (train, val) = (examples::<O>(config, &tokenizer, true)?, examples::<O>(config, &tokenizer, false)?);
    if keys.data.val_files.is_none() && !keys.trainer.test_freq.is_never() {
        tracing::warn!("ignored: trainer.test_freq: there is no validation, data.val_files is null");
    }
    let longest = train.iter().chain(&val).map(longest::<O>).max().unwrap_or(0);
    check_model(&O::decoder(config)?, &tokenizer, longest, "data.max_length")
        .with_context(|| format!("the model in {} and the tokenizer in {folder}", keys.model.path))?;
    let seed = keys.data.seed.unwrap_or(keys.trainer.seed);
    let sampler =
        Sampler::new(train.len(), keys.data.train_batch_size, keys.data.shuffle, seed, true).context("data.train_batch_size")?;
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

/// The training or validation examples; empty for validation if `data.val_files` is null.
fn examples<O: Objective>(config: &O::Config, tokenizer: &Tokenizer, training: bool) -> Result<Vec<O::Example>> {
    let keys = config.stage();
    let (data, trainer) = (keys.data, keys.trainer);
    let (key, files, max) = match (training, data.val_files) {
        (true, _) => ("data.train_files", data.train_files, data.train_max_samples),
        (false, Some(files)) => ("data.val_files", files, data.val_max_samples),
        (false, None) => return Ok(Vec::new()),
    };
    let examples = O::read(config, tokenizer, &Rows { files: files.paths(), training }).context(key)?;
    let seed = data.seed.unwrap_or(trainer.seed);
    Ok(take_samples(examples, usize::try_from(max).ok(), training && data.shuffle, seed))
}
