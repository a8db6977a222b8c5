//! `trainer --dry-run`: reads and checks everything that a run does, describes the run and its memory, and measures small steps.

use anyhow::{Context, Result};

use super::measured::measured;
use super::memory_plan::{MemoryPlan, plan_memory};
use super::run_settings::run_settings;
use super::start::find;
use super::unused_options;
use crate::job::disk::DiskPlan;
use crate::job::dry_run::{check_weights, describe, names, report, steps, validation};
use crate::job::inputs::RunInputs;
use crate::job::lora_settings;
use crate::job::measure::{RunLength, lines as lines_of_times, prepare};
use crate::job::rank_device::rank_device;
use crate::job::sharding_plan::ShardingPlan;
use crate::job::sources::NamedFiles;
use burnish_config::{Loaded, PpoConfig};
use burnish_distributed::Ranks;
use burnish_model::memory::ElementCount;
use burnish_util::interrupt::Interrupt;

/// Describes what a run of reinforcement learning would do. `measures`: its times are measured, if this machine has the weights
/// and the memory.
///
/// # Errors
/// Everything that a run would refuse before its first step: configuration, data, tokenizer, model, device, checkpoint. Without
/// a measurement, only the number of the weights is checked. No file is written.
pub fn dry_run(mut loaded: Loaded<PpoConfig>, ranks: &Ranks, measures: bool) -> Result<String> {
    let device = rank_device(loaded.config.trainer.device, ranks);
    let RunInputs { weights, device, inputs } = ranks.agree(find(&mut loaded, device, &Interrupt::default()))?;
    let lack = ranks.agree(prepare(weights, &mut loaded.config, measures))?;
    let named = NamedFiles::new(&mut loaded.config, &loaded.tree);
    let sources = named.checksums_to_resume(&loaded.config.trainer.resume())?;
    let config = loaded.config;
    let (trainer, parts) = (&config.trainer, &config.actor_rollout_ref);
    let sharding = ShardingPlan::new(ranks, trainer.gradient_slices, &trainer.resume());
    let ignored = unused_options::warn(&loaded.tree, &config, &inputs, &sharding)?;
    let decoder = inputs.decoder(&config)?;
    check_weights(&parts.model.path, parts.model.init, &decoder).context("actor_rollout_ref.model.path")?;
    let mut settings = run_settings(&config, inputs.steps_per_epoch, inputs.total_steps);
    (settings.compared.ignored, settings.compared.sources) = (ignored, sources);
    let resumed = settings.resumed_step(&loaded.tree)?;

    let response = config.data.max_response_length;
    let adapter = lora_settings::adapter(&parts.model.lora(), &decoder, parts.model.path.as_path(), trainer.seed)?;
    let MemoryPlan { memory, other_models } = plan_memory(&config, &inputs, &sharding)?;
    let tokens = inputs.plan.trajectories_per_step * (inputs.longest_prompt() + response);
    let processes = sharding.describe(memory.trained_numbers(), inputs.plan.actor.updates_per_step, tokens as ElementCount);
    let reward_model = inputs.reward_model.as_ref();
    let judge =
        reward_model.map(|model| ("rewards", describe(&model.path, &model.decoder, config.reward_model.model.init, None)));
    let disk = DiskPlan::new(&settings, memory.checkpoint_bytes(), config.validates());
    let lines: Vec<_> = [
        ("model", describe(&parts.model.path, &decoder, parts.model.init, adapter.as_ref())),
        ("device", trainer.device.to_string()),
        (
            "tokenizer",
            format!("{}: {} tokens", config.data.tokenizer.as_ref().unwrap_or(&parts.model.path), inputs.tokenizer.vocab_size()),
        ),
        ("training", format!("{} prompts from {}", inputs.train.len(), names(&config.data.train_files))),
        ("validation", validation("prompts", inputs.val.len(), config.data.val_files.as_ref())),
        ("longest", format!("{} tokens of prompt, {response} of response", inputs.longest_prompt())),
        ("plan", inputs.plan.to_string().replace('\n', "\n            ")),
        ("steps", steps(inputs.total_steps, settings.steps_per_epoch, resumed)),
        ("saved", disk.describe()),
    ]
    .into_iter()
    .chain(inputs.agents.as_ref().map(|agents| ("agents", agents.describe())))
    .chain(processes)
    .chain(other_models)
    .chain(judge)
    .collect();
    let lack = lack.or_else(|| memory.lack());
    let length = RunLength::new(&settings, resumed, config.data.val_files.is_some());
    let price = trainer.price_per_hour;
    let times = match measures {
        true => lines_of_times(ranks, lack, length, price, || measured(config, inputs, settings, &device, ranks))?,
        false => String::new(),
    };
    Ok(report(&lines, &memory, &times))
}
