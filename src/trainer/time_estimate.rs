//! What a step of reinforcement learning should take on a GPU, phase by phase, for responses that are all as long as they may be.

use anyhow::{Context, Result};

use super::inputs::Inputs;
use super::{algorithms, reference_model, teacher};
use crate::job::adapter;
use crate::job::division::Division;
use crate::job::models::optimizer;
use crate::job::time_estimate::{Costs, Generation, Sequences, TimeEstimate, Tokens};
use burnish_algorithm::advantage::Need;
use burnish_algorithm::kl;
use burnish_config::schema::Device;
use burnish_config::{MicroBatch, PpoConfig, UpdatePlan};
use burnish_model::Cut;
use burnish_model::hf_config::HfConfig;

/// Estimates the time of a step in one of the processes; `None` on a CPU. Prompts have the mean length of those that are trained on.
/// Left out: rounds of dynamic sampling after the first, waiting for tools and scores, and what the host does.
///
/// # Errors
/// A configuration of a model that does not fit.
pub fn of_step(config: &PpoConfig, inputs: &Inputs, division: &Division) -> Result<Option<TimeEstimate>> {
    let (trainer, parts) = (&config.trainer, &config.actor_rollout_ref);
    if trainer.device == Device::Cpu {
        return Ok(None);
    }
    let (rollout, plan) = (&parts.rollout, &inputs.plan);
    let (policy, path) = (inputs.decoder(config)?, parts.model.path.as_path());
    let adapter = adapter::adapter(&parts.model.lora(), &policy, path, trainer.seed)?;
    let actor = Costs::of(&policy, adapter.as_ref(), parts.model.enable_gradient_checkpointing);
    let lengths = Lengths::of(config, inputs, division);
    let mut time = TimeEstimate::new("a step", parts.model.dtype.is_bfloat16(trainer.device), division.ranks);

    let prompts = division.of_rank(inputs.sampler.batch_size());
    let generation = |samples: usize| Generation {
        prompts,
        samples,
        slots: rollout.max_num_seqs.min(prompts * samples),
        prompt: lengths.prompt,
        response: lengths.response,
        budget: rollout.max_num_batched_tokens,
    };
    time.generation("gen", &actor, generation(plan.samples_per_prompt));
    if inputs.estimator.as_ref().is_some_and(|estimator| estimator.needs(Need::GreedyBaseline)) {
        time.generation("gen_max", &actor, generation(1));
    }

    if let Some(model) = &inputs.reward_model {
        // Its score stands at the last token of each.
        let widest = model.widest(config, plan.trajectories_per_step);
        let read = Sequences { prompt: model.longest, response: 0, together: 1, ..lengths.all(Cut::Sequences(widest.predicted)) };
        time.pass("reward", &Costs::of(&model.decoder, None, false), read.tokens());
    }
    let corrections = algorithms::corrections(config)?;
    if algorithms::needs_old_log_probs(config, plan, &corrections) {
        let by_tokens = rollout.log_prob_use_dynamic_bsz.then_some(rollout.log_prob_max_token_len_per_gpu);
        time.pass("old_log_prob", &actor, lengths.pass(by_tokens, rollout.log_prob_micro_batch_size_per_gpu));
    }
    let settings = &parts.reference;
    let by_tokens = settings.log_prob_use_dynamic_bsz.then_some(settings.log_prob_max_token_len_per_gpu);
    let of_frozen = lengths.pass(by_tokens, settings.log_prob_micro_batch_size_per_gpu);
    let is_full = |name: &str| kl::find(name).is_some_and(|penalty| penalty.is_full());
    let reference = reference_model::decoder(config, inputs)?;
    let reference = Costs::of(reference.as_ref().map_or(&policy, |(_, decoder)| decoder), None, false);
    if config.has_reference() {
        time.pass("ref", &reference, of_frozen);
        if config.has_kl_in_reward() && is_full(&config.algorithm.kl_penalty) {
            // The whole distributions of both are compared.
            time.pass("ref, policy", &actor, of_frozen);
            time.pass("ref, again", &reference, of_frozen);
        }
    }
    let teacher = teacher::decoder(config, inputs)?.map(|(_, decoder)| Costs::of(&decoder, None, false));
    if let Some(teacher) = teacher.as_ref().filter(|_| config.distillation.passes_before()) {
        time.pass("teacher", teacher, of_frozen);
    }

    if let Some(update) = &plan.critic {
        let (settings, path) = (&config.critic, config.critic.model.path.as_path());
        let decoder = HfConfig::read(path)?.scalar_decoder(true).context("critic.model.path")?;
        let adapter = adapter::adapter(&settings.model.lora(), &decoder, path, trainer.seed)?;
        let critic = Costs::of(&decoder, adapter.as_ref(), settings.model.enable_gradient_checkpointing);
        let by_tokens = settings.use_dynamic_bsz.then_some(settings.forward_max_token_len_per_gpu);
        time.pass("values", &critic, lengths.pass(by_tokens, settings.forward_micro_batch_size_per_gpu));
        let optimizer = optimizer("critic.optim", &settings.optim)?;
        time.update("update_critic", &critic, lengths.update(update, settings.shuffle), update.updates_per_step, &optimizer, &[]);
    }

    let tokens = lengths.update(&plan.actor, parts.actor.shuffle);
    let mut beside = vec![];
    if let Some(teacher) = teacher.as_ref().filter(|_| !config.distillation.passes_before()) {
        beside.push(("teacher", teacher));
    } else if parts.actor.use_kl_loss && is_full(&parts.actor.kl_loss_type) {
        beside.push(("reference", &reference));
    }
    let objective = algorithms::objective(config, corrections.bypass, corrections.correction)?;
    if objective.needs_mini_batch() && (tokens.micro_batches > 1.0 || division.slices > 1) {
        beside.push(("what losses need", &actor));
    }
    let optimizer = optimizer("actor_rollout_ref.actor.optim", &parts.actor.optim)?;
    time.update("update_actor", &actor, tokens, plan.actor.updates_per_step, &optimizer, &beside);
    Ok(Some(time))
}

/// The lengths of the sequences of a step, and how many of them one process has.
struct Lengths<'a> {
    prompt: usize,
    response: usize,
    trajectories: usize,
    samples: usize,
    division: &'a Division,
}

impl<'a> Lengths<'a> {
    fn of(config: &PpoConfig, inputs: &Inputs, division: &'a Division) -> Self {
        let tokens: usize = inputs.train.iter().map(|prompt| prompt.ids.len()).sum();
        Self {
            prompt: tokens.div_ceil(inputs.train.len().max(1)),
            response: config.data.max_response_length,
            trajectories: inputs.plan.trajectories_per_step,
            samples: inputs.plan.samples_per_prompt,
            division,
        }
    }

    /// All sequences of a step of this process.
    fn all(&self, cut: Cut) -> Sequences {
        Sequences {
            count: self.division.of_rank(self.trajectories),
            prompt: self.prompt,
            response: self.response,
            together: self.samples,
            slices: self.division.of_rank(self.division.slices),
            cut,
        }
    }

    /// The tokens of a pass over them, cut by tokens where that is wanted, else by sequences; `None` cuts nothing.
    fn pass(&self, by_tokens: Option<usize>, sequences: Option<usize>) -> Tokens {
        let cut = by_tokens.map_or(Cut::Sequences(sequences.unwrap_or(usize::MAX)), Cut::Tokens);
        self.all(cut).tokens()
    }

    /// The tokens of one update. Shuffling parts the responses to a prompt.
    fn update(&self, plan: &UpdatePlan, shuffle: bool) -> Tokens {
        let cut = match plan.micro_batch {
            MicroBatch::Trajectories(count) => Cut::Sequences(count),
            MicroBatch::Tokens(budget) => Cut::Tokens(budget),
        };
        let count = self.division.of_rank(plan.mini_batch_trajectories);
        Sequences { count, together: if shuffle { 1 } else { self.samples }, ..self.all(cut) }.tokens()
    }
}
