//! Reads the inputs of a stage, and checks that they fit its model.

use anyhow::{Context, Result, anyhow};

use super::example::StageExample;
use super::inputs::{RowFiles, StageInputs};
use super::objective::Objective;
use crate::job::inputs::{RunInputs, find_inputs};
use crate::job::models::check_model;
use crate::job::problems::Problems;
use crate::job::second_model::note_other_tokenizer;
use crate::job::template_date::dated;
use crate::job::words::ToLayer;
use burnish_config::Loaded;
use burnish_config::schema::{Device, Location, ModelInit, StageConfig};
use burnish_data::{RowSelection, Sampler, Take, Tokenizer};
use burnish_model::Sequence;

/// Resolves names, opens the device and reads the inputs.
///
/// # Errors
/// All problems of these that do not depend on each other.
pub(super) fn find<O: Objective>(loaded: &mut Loaded<O::Config>, device: Device) -> Result<RunInputs<StageInputs<O::Example>>> {
    find_inputs(loaded, device, O::Config::dtypes, |loaded| read::<O>(&loaded.config), note_missing_rows)
}

/// Notes the data files that do not exist.
fn note_missing_rows(config: &impl StageConfig, problems: &mut Problems) {
    let data = config.stage().data;
    problems.note_missing_files("data.train_files", data.train_files);
    if let Some(files) = data.val_files {
        problems.note_missing_files("data.val_files", files);
    }
}

/// Reads the inputs, and checks that they fit the model in config.json.
fn read<O: Objective>(config: &O::Config) -> Result<StageInputs<O::Example>> {
    let keys = config.stage();
    let folder = keys.model.tokenizer_folder();
    let mut problems = Problems::default();
    let tokenizer = problems.note(tokenizer(config));
    let decoder = tokenizer.as_ref().and_then(|_| problems.note(O::decoder(config)));
    note_missing_rows(config, &mut problems);
    let (Some(tokenizer), Some(decoder)) = (tokenizer, decoder) else { return Err(problems.into_error()) };
    problems.end()?;
    let mut problems = Problems::default();
    let train = problems.note(training::<O>(config, &tokenizer));
    let val = problems.note(validation::<O>(config, &tokenizer));
    let (Some((train, sets)), Some(val)) = (train, val) else { return Err(problems.into_error()) };
    let longest = train.iter().chain(&val).map(longest::<O>).max().unwrap_or(0);
    check_model(&decoder, &tokenizer, longest, "data.max_length")
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
    Ok(StageInputs { tokenizer, train, val, sampler, total_steps })
}

/// Reads the tokenizer, with the end tokens of the model and the date of the chat template.
fn tokenizer(config: &impl StageConfig) -> Result<Tokenizer> {
    let keys = config.stage();
    let folder = keys.model.tokenizer_folder();
    let tokenizer = Tokenizer::load_with_template(folder.as_path(), keys.model.custom_chat_template.as_deref())
        .context("model.tokenizer_path (by default model.path)")?
        .with_ends_of(keys.model.path.as_path())
        .context("model.path")?;
    if keys.model.tokenizer_path.is_some() && keys.model.init == ModelInit::Pretrained {
        note_other_tokenizer("model.tokenizer_path", &tokenizer, keys.model.path.as_path())?;
    }
    dated(tokenizer, keys.data.chat_template_date, Some(&keys.trainer.resume()))
}

/// Returns the number of tokens of the longest sequence of an example.
pub(super) fn longest<O: Objective>(example: &O::Example) -> usize {
    example.sequences().iter().map(Sequence::len).max().unwrap_or(0)
}

/// Returns the training examples and, with weights, their numbers for each of `data.train_files`.
fn training<O: Objective>(config: &O::Config, tokenizer: &Tokenizer) -> Result<(Vec<O::Example>, Vec<usize>)> {
    let keys = config.stage();
    let (data, on_malformed) = (keys.data, keys.data.on_malformed_row.to_layer());
    let (shuffle, seed) = (data.shuffle, data.seed.unwrap_or(keys.trainer.seed));
    let read = |files, max: Option<usize>| {
        let take = max.map(|max| Take { max, shuffle, seed });
        let rows = RowFiles { files, training: true, reading: RowSelection { take, on_malformed } };
        O::read(config, tokenizer, &rows).context("data.train_files")
    };
    let max = usize::try_from(data.train_max_samples).ok();
    // Weighted sets are read separately, so that packing does not join rows of different sets.
    let sets: Vec<Vec<O::Example>> = match data.train_weights {
        None => vec![read(data.train_files.paths(), max)?],
        Some(weights) => {
            let shares = max.map(|max| shares(max, weights));
            let file = |(i, file): (usize, &Location)| read(file.paths(), shares.as_ref().map(|shares| shares[i]));
            data.train_files.iter().enumerate().map(file).collect::<Result<_>>()?
        }
    };
    let sizes = sets.iter().map(Vec::len).collect();
    Ok((sets.into_iter().flatten().collect(), sizes))
}

/// Divides a number of rows among files by their weights. Each file gets at least one.
fn shares(max: usize, weights: &[f64]) -> Vec<usize> {
    let all: f64 = weights.iter().sum();
    let mut before = 0.0;
    let up_to = |sum: f64| (max as f64 * sum / all).round() as usize;
    let share = |weight: &f64| {
        let start = up_to(before);
        before += weight;
        (up_to(before) - start).max(1)
    };
    weights.iter().map(share).collect()
}

/// Returns the validation examples; empty if `data.val_files` is null.
fn validation<O: Objective>(config: &O::Config, tokenizer: &Tokenizer) -> Result<Vec<O::Example>> {
    let keys = config.stage();
    let Some(files) = keys.data.val_files else { return Ok(Vec::new()) };
    let seed = keys.data.seed.unwrap_or(keys.trainer.seed);
    let take = usize::try_from(keys.data.val_max_samples).ok().map(|max| Take { max, shuffle: false, seed });
    let reading = RowSelection { take, on_malformed: keys.data.on_malformed_row.to_layer() };
    O::read(config, tokenizer, &RowFiles { files: files.paths(), training: false, reading }).context("data.val_files")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_divided_by_weight() {
        for (max, weights, expected) in [
            (12, &[1.0, 3.0][..], &[3, 9][..]),
            (10, &[1.0, 1.0, 1.0], &[3, 4, 3]),
            (2, &[1.0, 1000.0], &[1, 2]),
            (5, &[0.1], &[5]),
        ] {
            assert_eq!(shares(max, weights), expected, "{max} {weights:?}");
        }
    }
}
