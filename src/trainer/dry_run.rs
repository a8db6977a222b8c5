//! `trainer --dry-run`: everything that a run reads and checks, without weights and steps; then what it would do, and the memory it
//! would take.

use anyhow::{Context, Result};

use super::inputs::Inputs;
use super::run_settings::run_settings;
use super::{algorithms, reference_model, teacher, unused_options};
use crate::job::dry_run::{check_weights, describe, names, report, steps};
use crate::job::hub_names;
use crate::job::lora_settings;
use crate::job::memory_estimate::MemoryEstimate;
use crate::job::models::{open_device, optimizer};
use crate::job::rank_device::rank_device;
use crate::job::second_model::{SecondModel, check_adapter};
use crate::job::sharding_plan::ShardingPlan;
use crate::job::sources::NamedFiles;
use burnish_algorithm::kl;
use burnish_config::schema::{Init, TEACHER};
use burnish_config::{Loaded, MicroBatch, PpoConfig, UpdatePlan};
use burnish_distributed::Ranks;
use burnish_model::hf_config::HfConfig;
use burnish_model::memory::{ElementCount, LargestBatch};
use burnish_util::interrupt::Interrupt;

/// Describes what a run of reinforcement learning would do.
///
/// # Errors
/// Everything that a run would refuse before its first step: configuration, data, tokenizer, model, device, checkpoint. Of the
/// weights only the number is compared, not each name, shape and type; whether the run may write its files is not tried.
pub fn dry_run(mut loaded: Loaded<PpoConfig>, ranks: &Ranks) -> Result<String> {
    hub_names::find(&mut loaded)?.leave();
    let named = NamedFiles::of(&mut loaded.config, &loaded.tree);
    let sources = named.checksums_to_resume(&loaded.config.trainer.resume())?;
    let config = loaded.config;
    ranks.agree(open_device("trainer.device", rank_device(config.trainer.device, ranks), &config.dtypes()))?;
    let inputs = Inputs::read(&config, &loaded.tree, &Interrupt::default())?;
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
    let Estimate { memory, others } = estimate(&config, &inputs, &sharding)?;
    let tokens = inputs.plan.trajectories_per_step * (inputs.longest_prompt() + response);
    let processes = sharding.describe(memory.trained_numbers(), inputs.plan.actor.updates_per_step, tokens as Numbers);
    let reward_model = inputs.reward_model.as_ref();
    let judge =
        reward_model.map(|model| ("rewards", describe(&model.path, &model.decoder, config.reward_model.model.init, None)));
    let lines: Vec<_> = [
        ("model", describe(&parts.model.path, &decoder, parts.model.init, adapter.as_ref())),
        ("device", trainer.device.to_string()),
        (
            "tokenizer",
            format!("{}: {} tokens", config.data.tokenizer.as_ref().unwrap_or(&parts.model.path), inputs.tokenizer.vocab_size()),
        ),
        ("training", format!("{} prompts from {}", inputs.train.len(), names(&config.data.train_files))),
        ("validation", format!("{} prompts from {}", inputs.val.len(), names(&config.data.val_files))),
        ("longest", format!("{} tokens of prompt, {response} of response", inputs.longest_prompt())),
        ("plan", inputs.plan.to_string().replace('\n', "\n            ")),
        ("steps", steps(inputs.total_steps, settings.steps_per_epoch, resumed)),
    ]
    .into_iter()
    .chain(inputs.agents.as_ref().map(|agents| ("agents", agents.describe())))
    .chain(processes)
    .chain(others)
    .chain(judge)
    .collect();
    Ok(report(&lines, &memory))
}

/// The memory of a run, and its reference of another model and its critic in a few words.
pub(super) struct Estimate {
    pub memory: MemoryEstimate,
    others: Vec<(&'static str, String)>,
}

/// The memory a run of this configuration takes, from the shapes of its models and the lengths of its prompts.
///
/// # Errors
/// A configuration of a model that does not fit.
pub(super) fn estimate(config: &PpoConfig, inputs: &Inputs, sharding: &ShardingPlan) -> Result<Estimate> {
    let (trainer, parts) = (&config.trainer, &config.actor_rollout_ref);
    let decoder = inputs.decoder(config)?;
    let (response, plan) = (config.data.max_response_length, inputs.plan);
    let prompt = longest_trained(inputs, config.algorithm.filter_groups.enable);
    let longest = prompt.saturating_add(response);
    // A prompt goes through the trunk once for its responses in a micro-batch, which shuffling may part.
    let together = if parts.actor.shuffle { 1 } else { plan.samples_per_prompt };
    let widest = |sequences: usize| {
        let sequences = sequences.max(1);
        // A cut that does not end with a prompt's last response meets one prompt more.
        let prompts = (sequences.div_ceil(together) + usize::from(!sequences.is_multiple_of(together))).min(sequences);
        LargestBatch { rows: prompts * prompt + sequences * response, predicted: sequences * response, longest }
    };
    let micro_batch = |update: &UpdatePlan| match update.micro_batch {
        MicroBatch::Trajectories(count) => count.min(update.mini_batch_trajectories),
        MicroBatch::Tokens(budget) => (budget / longest.max(1)).clamp(1, update.mini_batch_trajectories),
    };
    let micro = micro_batch(&plan.actor);
    check_adapter(&parts.model.lora(), &inputs.tokenizer)?;
    let adapter = lora_settings::adapter(&parts.model.lora(), &decoder, parts.model.path.as_path(), trainer.seed)?;
    let mut memory = MemoryEstimate::new(decoder.clone(), adapter.as_ref(), trainer.device);
    memory.trained(&optimizer("actor_rollout_ref.actor.optim", &parts.actor.optim)?, sharding);
    let validated = config.data.val_batch_size.unwrap_or(inputs.val.len()).min(inputs.val.len());
    let validated = if trainer.validates() { validated * parts.rollout.val_kwargs.n } else { 0 };
    let sampled = inputs.sampler.batch_size() * plan.samples_per_prompt;
    // A rank generates for its share of the prompts.
    let trained_here = sharding.of_rank(inputs.sampler.batch_size()) * plan.samples_per_prompt;
    let validated_here = sharding.of_rank(validated);
    // Beside those that decode, as many conversations may wait for their tools.
    let open = if inputs.agents.is_some() { 2 * parts.rollout.max_num_seqs } else { parts.rollout.max_num_seqs };
    let slots = open.min(trained_here.max(validated_here));
    let samples = if sampled >= validated { plan.samples_per_prompt } else { parts.rollout.val_kwargs.n };
    let prompts = slots.min(trained_here.max(validated_here) / samples);
    let bfloat16 = parts.model.dtype.is_bfloat16(trainer.device);
    memory.trajectories(sampled.max(validated), (inputs.longest_prompt(), response));
    memory.generation(slots, prompts, (inputs.longest_prompt(), response), parts.rollout.max_num_batched_tokens, bfloat16);
    let sequences = |by_tokens: bool, tokens: usize, count: Option<usize>| match by_tokens {
        true => (tokens / longest).min(plan.trajectories_per_step),
        false => count.unwrap_or(plan.trajectories_per_step).min(plan.trajectories_per_step),
    };
    let (rollout, reference) = (&parts.rollout, &parts.reference);
    let corrections = algorithms::corrections(config)?;
    if algorithms::needs_old_log_probs(config, &plan, &corrections) {
        let (tokens, count) = (rollout.log_prob_max_token_len_per_gpu, rollout.log_prob_micro_batch_size_per_gpu);
        memory.pass("old log-probabilities", widest(sequences(rollout.log_prob_use_dynamic_bsz, tokens, count)));
    }
    let mut lines = Vec::new();
    if config.has_reference() {
        let other = reference_model::decoder(config, inputs)?;
        if let Some((path, decoder)) = &other {
            check_weights(path, Init::Pretrained, decoder).context(reference_model::KEY)?;
            lines.push(("reference", describe(path, decoder, Init::Pretrained, None)));
        }
        let other = other.as_ref().map(|(_, decoder)| decoder);
        if other.is_some() || adapter.is_none() {
            memory.reference(other);
        }
        let (tokens, count) = (reference.log_prob_max_token_len_per_gpu, reference.log_prob_micro_batch_size_per_gpu);
        memory.pass_of("reference", other, widest(sequences(reference.log_prob_use_dynamic_bsz, tokens, count)));
    }
    if let Some((path, decoder)) = teacher::decoder(config, inputs)? {
        check_weights(path, Init::Pretrained, &decoder).context(TEACHER)?;
        lines.push(("teacher", describe(path, &decoder, Init::Pretrained, None)));
        let (tokens, count) = (reference.log_prob_max_token_len_per_gpu, reference.log_prob_micro_batch_size_per_gpu);
        match config.distillation.passes_before() {
            true => {
                let cut = sequences(reference.log_prob_use_dynamic_bsz, tokens, count);
                memory.teacher_of_samples(&decoder, widest(cut));
            }
            false => memory.teacher(decoder, config.distillation.compares_heads()),
        }
    }
    if let Some(model) = &inputs.reward_model {
        check_weights(&model.path, config.reward_model.model.init, &model.decoder).context("reward_model.model.path")?;
        memory.reward_model(&model.decoder, model.widest(config, sampled.max(validated)));
    }
    memory.update(widest(micro), micro < plan.actor.mini_batch_trajectories, parts.model.enable_gradient_checkpointing);
    if parts.actor.use_kl_loss && kl::find(&parts.actor.kl_loss_type).is_some_and(|penalty| penalty.is_full()) {
        memory.full_kl(widest(micro));
    }

    if let Some(update) = plan.critic {
        let (settings, hf) = (&config.critic, HfConfig::read(config.critic.model.path.as_path())?);
        let decoder = hf.scalar_decoder(true).context("critic.model.path")?;
        inputs.check_model(&decoder, config).context("critic.model.path")?;
        let critic =
            SecondModel { key: "critic.model.path", folder: settings.model.path.as_path(), role: "critic", first: "policy" };
        // A critic of the policy's own folder reads what the policy reads, in whatever tokenizer.
        if settings.model.path != parts.model.path {
            critic.padded(&inputs.tokenizer, (decoder.vocab_size, inputs.decoder(config)?.vocab_size))?;
        }
        check_adapter(&settings.model.lora(), &inputs.tokenizer)?;
        // Of a language model, the head is not read.
        let in_files = if hf.classifier().is_some() { decoder.clone() } else { hf.decoder()? };
        check_weights(&settings.model.path, settings.model.init, &in_files).context("critic.model.path")?;
        let adapter = lora_settings::adapter(&settings.model.lora(), &decoder, settings.model.path.as_path(), trainer.seed)?;
        lines.push(("critic", describe(&settings.model.path, &decoder, settings.model.init, adapter.as_ref())));
        let mut critic = MemoryEstimate::new(decoder, adapter.as_ref(), trainer.device);
        critic.trained(&optimizer("critic.optim", &settings.optim)?, sharding);
        let (tokens, count) = (settings.forward_max_token_len_per_gpu, settings.forward_micro_batch_size_per_gpu);
        critic.pass("values", widest(sequences(settings.use_dynamic_bsz, tokens, count)));
        let micro = micro_batch(&update);
        let several = micro < update.mini_batch_trajectories;
        critic.update(widest(micro), several, settings.model.enable_gradient_checkpointing);
        memory.critic(critic);
    }

    Ok(Estimate { memory, others: lines })
}

/// Tokens of the longest prompt that the run will train on: an epoch cut short does not see them all, as long as each step takes one
/// batch of them.
fn longest_trained(inputs: &Inputs, is_filtered: bool) -> usize {
    let length = |i: usize| inputs.train[i].ids.len();
    if is_filtered || inputs.total_steps >= inputs.sampler.batches_per_epoch() {
        return (0..inputs.train.len()).map(length).max().unwrap_or(0);
    }
    let mut sampler = inputs.sampler.clone();
    (0..inputs.total_steps).flat_map(|_| sampler.next_batch()).map(length).max().unwrap_or(0)
}
