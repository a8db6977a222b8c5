//! `trainer sft --dry-run`: reads and checks everything that a run does, without weights and steps.

use anyhow::{Context, Result};

use super::sft_inputs::{Inputs, cut, decoder, run_settings, unused_options};
use crate::config::{Loaded, SftConfig};
use crate::data::SftExample;
use crate::job::adapter;
use crate::job::dry_run::{check_weights, describe, names, report, steps};
use crate::job::hub_names::{self, Weights};
use crate::job::memory_estimate::MemoryEstimate;
use crate::job::models::{open_device, optimizer};
use crate::job::unused_options::warn_of_unused;
use crate::model::memory::Widest;
use crate::model::{Cut, Sequence};

/// Describes what a supervised run would do.
///
/// # Errors
/// If a run would be refused before its first step, as far as `trainer::dry_run` can tell.
pub fn dry_run(mut loaded: Loaded<SftConfig>) -> Result<String> {
    hub_names::find(&mut loaded, Weights::Compared)?;
    let config = loaded.config;
    let (data, model, trainer) = (&config.data, &config.model, &config.trainer);
    open_device(trainer.device)?;
    let inputs = Inputs::read(&config)?;
    warn_of_unused::<SftConfig>(&loaded.tree, &unused_options(&config)?)?;
    let decoder = decoder(&config)?;
    check_weights(&model.path, model.init, &decoder).context("model.path")?;
    let per_epoch = inputs.sampler.batches_per_epoch();
    let resumed = run_settings(&config, per_epoch, inputs.total_steps).resumed_step(&loaded.tree)?;

    let (batch, cut) = (data.train_batch_size, cut(&config));
    let adapter = adapter::adapter(&model.lora(), &decoder, model.path.as_path(), trainer.seed)?;
    let memory = estimate(&config, &inputs)?;

    let longest = inputs.train.iter().chain(&inputs.val).map(|e| e.ids.len()).max().unwrap_or(0);
    let tokenizer = model.tokenizer_path.as_ref().unwrap_or(&model.path);
    let validation = match &data.val_files {
        Some(files) => format!("{} examples from {}", inputs.val.len(), names(files)),
        None => "none: data.val_files is null".to_owned(),
    };
    let micro = match cut {
        Cut::Sequences(examples) => format!("{examples}"),
        Cut::Tokens(tokens) => format!("up to {tokens} tokens"),
    };
    let lines = [
        ("model", describe(&model.path, &decoder, model.init, adapter.as_ref())),
        ("device", trainer.device.to_string()),
        ("tokenizer", format!("{tokenizer}: {} tokens", inputs.tokenizer.vocab_size())),
        ("training", format!("{} examples from {}", inputs.train.len(), names(&data.train_files))),
        ("validation", validation),
        ("longest", format!("{longest} tokens")),
        ("plan", format!("each step: {batch} examples, in micro-batches of {micro} = 1 update")),
        ("steps", steps(inputs.total_steps, per_epoch, resumed)),
    ];
    Ok(report(&lines, &memory))
}

/// The memory that a run takes, from the shape of its model and the lengths of its examples.
///
/// # Errors
/// If the configuration is of a model that does not fit.
pub(super) fn estimate(config: &SftConfig, inputs: &Inputs) -> Result<MemoryEstimate> {
    let (model, cut, mut sampler) = (&config.model, cut(config), inputs.sampler.clone());
    let decoder = decoder(config)?;
    let adapter = adapter::adapter(&model.lora(), &decoder, model.path.as_path(), config.trainer.seed)?;
    // One epoch suffices, because every later one has the same examples.
    let batches = sampler.batches_per_epoch().min(inputs.total_steps);
    let trained = (0..batches).map(|_| widest(sampler.next_batch().iter().map(|&i| &inputs.train[i]), cut));
    let (trained, pieces): (Vec<Widest>, Vec<usize>) = trained.unzip();
    let mut memory = MemoryEstimate::new(decoder, adapter.as_ref(), config.trainer.device);
    memory.trained(&optimizer("optim", &config.optim.optim())?);
    if !inputs.val.is_empty() {
        memory.pass("validation", widest(inputs.val.iter(), cut).0);
    }
    let trained = trained.into_iter().max_by_key(|widest| widest.rows).unwrap_or_default();
    memory.update(trained, pieces.iter().any(|&pieces| pieces > 1), model.enable_gradient_checkpointing);
    Ok(memory)
}

/// The largest micro-batch of some examples, and the number of micro-batches. Every token of an example but the first is
/// predicted.
fn widest<'a>(examples: impl Iterator<Item = &'a SftExample>, cut: Cut) -> (Widest, usize) {
    let sequences: Vec<Sequence> =
        examples.map(|example| Sequence { prompt: &example.ids[..1], response: &example.ids[1..] }).collect();
    let micro_batches = cut.micro_batches(&sequences);
    let widths = micro_batches.iter().map(|micro| {
        let lengths = || micro.iter().map(|&i| sequences[i].len());
        let rows = lengths().sum();
        Widest { rows, predicted: rows - micro.len(), longest: lengths().max().unwrap_or(1) }
    });
    (widths.max_by_key(|widest| widest.rows).unwrap_or_default(), micro_batches.len())
}
