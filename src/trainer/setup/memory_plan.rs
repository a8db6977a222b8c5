//! Memory of a run of reinforcement learning, from the shapes of its models and the lengths of its prompts.

use anyhow::{Context, Result};

use super::inputs::TrainerInputs;
use crate::job::dry_run::{check_weights, describe};
use crate::job::lora_settings;
use crate::job::memory_estimate::MemoryEstimate;
use crate::job::models::optimizer;
use crate::job::second_model::{SecondModel, check_adapter};
use crate::job::sharding_plan::ShardingPlan;
use crate::trainer::algorithms;
use crate::trainer::learning::{reference_model, teacher};
use burnish_algorithm::kl;
use burnish_config::schema::{ModelInit, TEACHER, TeacherModelKind};
use burnish_config::{MicroBatch, PpoConfig, UpdatePlan};
use burnish_model::memory::LargestBatch;

/// Line of a dry run: its name and its text.
type Line = (&'static str, String);

/// Memory of a run, and a line for each model other than the policy.
pub(super) struct MemoryPlan {
    pub memory: MemoryEstimate,
    pub(crate) other_models: Vec<Line>,
}

/// Estimates the memory of a run.
///
/// # Errors
/// If a model cannot be read or does not fit the others.
pub(super) fn plan_memory(config: &PpoConfig, inputs: &TrainerInputs, sharding: &ShardingPlan) -> Result<MemoryPlan> {
    let (trainer, parts, plan) = (&config.trainer, &config.actor_rollout_ref, inputs.plan);
    let sizes = Sizes::new(config, inputs);
    check_adapter(&parts.model.lora(), &inputs.tokenizer)?;
    let decoder = inputs.decoder(config)?;
    let adapter = lora_settings::adapter(&parts.model.lora(), &decoder, parts.model.path.as_path(), trainer.seed)?;
    let mut memory = MemoryEstimate::new(decoder, adapter.as_ref(), trainer.device);
    memory.trained(&optimizer("actor_rollout_ref.actor.optim", &parts.actor.optim)?, sharding);
    let responses = add_generation(&mut memory, config, inputs, sharding);
    let corrections = algorithms::corrections(config)?;
    if algorithms::needs_old_log_probs(config, &plan, &corrections) {
        let rollout = &parts.rollout;
        let (tokens, count) = (rollout.log_prob_max_token_len_per_gpu, rollout.log_prob_micro_batch_size_per_gpu);
        memory.pass("old log-probabilities", sizes.of_pass(rollout.log_prob_use_dynamic_bsz, tokens, count));
    }
    let mut other_models = Vec::new();
    if config.has_reference() {
        other_models.extend(add_reference(&mut memory, config, inputs, &sizes, adapter.is_some())?);
    }
    other_models.extend(add_teacher(&mut memory, config, inputs, &sizes)?);
    if let Some(model) = &inputs.reward_model {
        check_weights(&model.path, config.reward_model.model.init, &model.decoder).context("reward_model.model.path")?;
        memory.reward_model(&model.decoder, model.widest(config, responses));
    }
    let micro = sizes.micro_batch(&plan.actor);
    let several = micro < plan.actor.mini_batch_trajectories;
    memory.update(sizes.widest(micro), several, parts.model.enable_gradient_checkpointing);
    if parts.actor.use_kl_loss && kl::find(&parts.actor.kl_loss_type).is_some_and(|penalty| penalty.is_full()) {
        memory.full_kl(sizes.widest(micro));
    }
    if let Some(update) = &plan.critic {
        let (critic, line) = plan_critic(config, inputs, sharding, &sizes, update)?;
        memory.critic(critic);
        other_models.push(line);
    }
    Ok(MemoryPlan { memory, other_models })
}

/// Adds the responses of a step or a validation, and their generation. Returns the number of responses held at once.
fn add_generation(memory: &mut MemoryEstimate, config: &PpoConfig, inputs: &TrainerInputs, sharding: &ShardingPlan) -> usize {
    let (rollout, plan) = (&config.actor_rollout_ref.rollout, inputs.plan);
    let validated = config.data.val_batch_size.unwrap_or(inputs.val.len()).min(inputs.val.len());
    let validated = if config.validates() { validated * rollout.val_kwargs.n } else { 0 };
    let sampled = inputs.sampler.batch_size() * plan.samples_per_prompt;
    // A rank generates for its share of the prompts.
    let trained_here = sharding.of_rank(inputs.sampler.batch_size()) * plan.samples_per_prompt;
    let validated_here = sharding.of_rank(validated);
    // In addition to the decoding conversations, as many conversations may wait for their tools.
    let open = if inputs.agents.is_some() { 2 * rollout.max_num_seqs } else { rollout.max_num_seqs };
    let slots = open.min(trained_here.max(validated_here));
    let samples = if sampled >= validated { plan.samples_per_prompt } else { rollout.val_kwargs.n };
    let prompts = slots.min(trained_here.max(validated_here) / samples);
    let bfloat16 = config.actor_rollout_ref.model.dtype.is_bfloat16(config.trainer.device);
    let lengths = (inputs.longest_prompt(), config.data.max_response_length);
    memory.trajectories(sampled.max(validated), lengths);
    memory.generation(slots, prompts, lengths, rollout.max_num_batched_tokens, bfloat16);
    sampled.max(validated)
}

/// Adds the reference and its pass. Returns a line about a reference with its own weights.
fn add_reference(
    memory: &mut MemoryEstimate,
    config: &PpoConfig,
    inputs: &TrainerInputs,
    sizes: &Sizes,
    is_adapted: bool,
) -> Result<Option<Line>> {
    let other = reference_model::decoder(config, inputs)?;
    let mut line = None;
    if let Some((path, decoder)) = &other {
        check_weights(path, ModelInit::Pretrained, decoder).context(reference_model::KEY)?;
        line = Some(("reference", describe(path, decoder, ModelInit::Pretrained, None)));
    }
    let other = other.as_ref().map(|(_, decoder)| decoder);
    if other.is_some() || !is_adapted {
        memory.reference(other);
    }
    memory.pass_of("reference", other, sizes.of_frozen(config));
    Ok(line)
}

/// Adds the teacher, if the run has one, and returns a line about it.
fn add_teacher(memory: &mut MemoryEstimate, config: &PpoConfig, inputs: &TrainerInputs, sizes: &Sizes) -> Result<Option<Line>> {
    if let Some(kind) = config.distillation.kind() {
        let decoder = inputs.decoder(config)?;
        match (kind, config.distillation.passes_before()) {
            (TeacherModelKind::Live, _) => {}
            (_, true) => memory.teacher_of_samples(&decoder, sizes.of_frozen(config)),
            (_, false) => memory.teacher(decoder, false),
        }
        return Ok(None);
    }
    let Some((path, decoder)) = teacher::decoder(config, inputs)? else { return Ok(None) };
    check_weights(path, ModelInit::Pretrained, &decoder).context(TEACHER)?;
    let line = ("teacher", describe(path, &decoder, ModelInit::Pretrained, None));
    match config.distillation.passes_before() {
        true => memory.teacher_of_samples(&decoder, sizes.of_frozen(config)),
        false => memory.teacher(decoder, config.distillation.compares_heads()),
    }
    Ok(Some(line))
}

/// Returns the memory of the critic, and a line about it.
fn plan_critic(
    config: &PpoConfig,
    inputs: &TrainerInputs,
    sharding: &ShardingPlan,
    sizes: &Sizes,
    update: &UpdatePlan,
) -> Result<(MemoryEstimate, Line)> {
    let (settings, folder) = (&config.critic, config.critic.model.path.as_path());
    let hf = lora_settings::read_config(&settings.model.lora(), folder, settings.model.override_config.clone())?;
    let decoder = hf.scalar_decoder(true).context("critic.model.path")?;
    inputs.check_model(&decoder, config).context("critic.model.path")?;
    let critic = SecondModel { key: "critic.model.path", folder, role: "critic", first: "policy" };
    // A critic from the policy's own folder reads the policy's tokens with any tokenizer.
    if settings.model.path != config.actor_rollout_ref.model.path {
        critic.padded(&inputs.tokenizer, (decoder.vocab_size, inputs.decoder(config)?.vocab_size))?;
    }
    check_adapter(&settings.model.lora(), &inputs.tokenizer)?;
    // The head of a language model is not read.
    let in_files = if hf.classifier().is_some() { decoder.clone() } else { hf.decoder()? };
    check_weights(&settings.model.path, settings.model.init, &in_files).context("critic.model.path")?;
    let adapter = lora_settings::adapter(&settings.model.lora(), &decoder, folder, config.trainer.seed)?;
    let line = ("critic", describe(&settings.model.path, &decoder, settings.model.init, adapter.as_ref()));
    let mut memory = MemoryEstimate::new(decoder, adapter.as_ref(), config.trainer.device);
    memory.trained(&optimizer("critic.optim", &settings.optim)?, sharding);
    let (tokens, count) = (settings.forward_max_token_len_per_gpu, settings.forward_micro_batch_size_per_gpu);
    memory.pass("values", sizes.of_pass(settings.use_dynamic_bsz, tokens, count));
    let micro = sizes.micro_batch(update);
    let several = micro < update.mini_batch_trajectories;
    memory.update(sizes.widest(micro), several, settings.model.enable_gradient_checkpointing);
    Ok((memory, line))
}

/// Sizes of the micro-batches of a step.
struct Sizes {
    /// Tokens of the longest prompt that is trained on.
    prompt: usize,
    /// Token limit of a response.
    response: usize,
    /// Responses that share the pass over their prompt.
    together: usize,
    trajectories: usize,
}

impl Sizes {
    fn new(config: &PpoConfig, inputs: &TrainerInputs) -> Self {
        Self {
            prompt: longest_trained(inputs, config.algorithm.filter_groups.enable),
            response: config.data.max_response_length,
            // Responses to a prompt in one micro-batch share its pass, unless shuffling separates them.
            together: if config.actor_rollout_ref.actor.shuffle { 1 } else { inputs.plan.samples_per_prompt },
            trajectories: inputs.plan.trajectories_per_step,
        }
    }

    fn longest(&self) -> usize {
        self.prompt.saturating_add(self.response)
    }

    /// Returns the size of a pass over this many sequences.
    fn widest(&self, sequences: usize) -> LargestBatch {
        let (sequences, together) = (sequences.max(1), self.together);
        // A micro-batch that does not end with the last response to a prompt has one prompt more.
        let prompts = (sequences.div_ceil(together) + usize::from(!sequences.is_multiple_of(together))).min(sequences);
        let predicted = sequences * self.response;
        LargestBatch { rows: prompts * self.prompt + predicted, predicted, longest: self.longest() }
    }

    /// Returns the number of sequences in a micro-batch of an update.
    fn micro_batch(&self, update: &UpdatePlan) -> usize {
        match update.micro_batch {
            MicroBatch::Trajectories(count) => count.min(update.mini_batch_trajectories),
            MicroBatch::Tokens(budget) => (budget / self.longest().max(1)).clamp(1, update.mini_batch_trajectories),
        }
    }

    /// Returns the size of a pass without gradients, cut by tokens or by sequences.
    fn of_pass(&self, by_tokens: bool, tokens: usize, sequences: Option<usize>) -> LargestBatch {
        let sequences = if by_tokens { tokens / self.longest() } else { sequences.unwrap_or(self.trajectories) };
        self.widest(sequences.min(self.trajectories))
    }

    /// Returns the size of a pass of the reference or the teacher.
    fn of_frozen(&self, config: &PpoConfig) -> LargestBatch {
        let settings = &config.actor_rollout_ref.reference;
        let (tokens, count) = (settings.log_prob_max_token_len_per_gpu, settings.log_prob_micro_batch_size_per_gpu);
        self.of_pass(settings.log_prob_use_dynamic_bsz, tokens, count)
    }
}

/// Returns the length of the longest prompt that the planned steps reach; a run of less than one epoch does not see all prompts.
/// With filtered groups, steps may take any number of batches.
fn longest_trained(inputs: &TrainerInputs, is_filtered: bool) -> usize {
    let length = |i: usize| inputs.train[i].ids.len();
    if is_filtered || inputs.total_steps >= inputs.sampler.batches_per_epoch() {
        return (0..inputs.train.len()).map(length).max().unwrap_or(0);
    }
    let mut sampler = inputs.sampler.clone();
    (0..inputs.total_steps).flat_map(|_| sampler.next_batch()).map(length).max().unwrap_or(0)
}
