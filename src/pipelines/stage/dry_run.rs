//! `--dry-run` of a stage: reads and checks everything that a run does, describes the run, and measures small steps of it.

use anyhow::{Context, Result};

use super::measured::measured;
use super::memory::estimate;
use super::objective::Objective;
use super::read::{find, longest};
use super::settings::{cut, run_settings, unused_options};
use crate::job::disk::DiskPlan;
use crate::job::dry_run::{check_weights, describe, names, report, steps, validation};
use crate::job::inputs::RunInputs;
use crate::job::lora_settings;
use crate::job::measure::{RunLength, lines as lines_of_times, prepare};
use crate::job::rank_device::rank_device;
use crate::job::sharding_plan::ShardingPlan;
use crate::job::sources::NamedFiles;
use crate::job::unused_options::warn_of_unused;
use burnish_config::Loaded;
use burnish_config::schema::{Location, OneOrMany, StageConfig};
use burnish_data::Share;
use burnish_distributed::Ranks;
use burnish_model::Cut;
use burnish_model::memory::ElementCount;

/// Describes what a run of the stage would do. `measures`: its times are measured, if this machine has the weights and the memory.
///
/// # Errors
/// If a run would be refused before its first step; without a measurement, for a reason other than its weights.
pub fn dry_run<O: Objective>(mut loaded: Loaded<O::Config>, ranks: &Ranks, measures: bool) -> Result<String> {
    let device = rank_device(loaded.config.stage().trainer.device, ranks);
    let RunInputs { weights, device, inputs } = ranks.agree(find::<O>(&mut loaded, device))?;
    let lack = ranks.agree(prepare(weights, &mut loaded.config, measures))?;
    let named = NamedFiles::new(&mut loaded.config, &loaded.tree);
    let sources = named.checksums_to_resume(&loaded.config.stage().trainer.resume())?;
    let config = loaded.config;
    let keys = config.stage();
    let (data, model, trainer) = (keys.data, keys.model, keys.trainer);
    let sharding = ShardingPlan::new(ranks, trainer.gradient_slices, &trainer.resume());
    let ignored = warn_of_unused::<O::Config>(&loaded.tree, &unused_options::<O>(&config, &sharding)?)?;
    let decoder = O::decoder(&config)?;
    check_weights(&model.path, model.init, &O::decoder_in_files(&config)?).context("model.path")?;
    let per_epoch = inputs.sampler.batches_per_epoch();
    let mut settings = run_settings(&config, per_epoch, inputs.total_steps);
    (settings.compared.ignored, settings.compared.sources) = (ignored, sources);
    let resumed = settings.resumed_step(&loaded.tree)?;

    let adapter = lora_settings::adapter(&model.lora(), &decoder, model.path.as_path(), trainer.seed)?;
    let memory = estimate::<O>(&config, &inputs, &sharding)?;
    let (batch, longest) = (data.train_batch_size, inputs.train.iter().chain(&inputs.val).map(longest::<O>).max().unwrap_or(0));
    let micro = match cut(&config) {
        Cut::Sequences(examples) => format!("{examples}"),
        Cut::Tokens(tokens) => format!("up to {tokens} tokens"),
    };
    let disk = DiskPlan::new(&settings, memory.checkpoint_bytes(), !inputs.val.is_empty());
    let before = [
        ("model", describe(&model.path, &decoder, model.init, adapter.as_ref())),
        ("device", trainer.device.to_string()),
        ("tokenizer", format!("{}: {} tokens", model.tokenizer_folder(), inputs.tokenizer.vocab_size())),
        ("training", format!("{} examples from {}", inputs.train.len(), names(data.train_files))),
        ("validation", validation("examples", inputs.val.len(), data.val_files)),
        ("longest", format!("{longest} tokens")),
    ];
    let after = [
        ("plan", format!("each step: {batch} examples, in micro-batches of {micro} = 1 update")),
        ("steps", steps(inputs.total_steps, per_epoch, resumed)),
        ("saved", disk.describe()),
    ];
    let processes = sharding.describe(memory.trained_numbers(), 1, (batch * longest) as ElementCount);
    let mixture = mixture(inputs.sampler.shares(), data.train_files);
    let lines: Vec<_> =
        before.into_iter().chain(processes).chain(mixture).chain(O::describe(&config, &inputs)?).chain(after).collect();
    let lack = lack.or_else(|| memory.lack());
    let length = RunLength::new(&settings, resumed, !inputs.val.is_empty());
    let price = trainer.price_per_hour;
    let times = match measures {
        true => lines_of_times(ranks, lack, length, price, || measured::<O>(config, inputs, settings, &device, ranks))?,
        false => String::new(),
    };
    Ok(report(&lines, &memory, &times))
}

/// Returns the line with each file's share of an epoch, if `data.train_weights` is set.
fn mixture(shares: &[Share], files: &OneOrMany<Location>) -> Option<(&'static str, String)> {
    let all: usize = shares.iter().map(|share| share.drawn).sum();
    let line = |(share, file): (&Share, &Location)| {
        let (Share { rows, drawn }, percent) = (share, 100.0 * share.drawn as f64 / all as f64);
        format!("{percent:.1} % {file} ({drawn} of its {rows} examples, {:.2} passes)", *drawn as f64 / *rows as f64)
    };
    let lines: Vec<String> = shares.iter().zip(&**files).map(line).collect();
    (!lines.is_empty()).then(|| ("each epoch", lines.join(", ")))
}
