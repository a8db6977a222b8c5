//! From a configuration to a run of reinforcement learning: resolves names, reads files, and reports every mistake before the
//! first step.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};

use super::inputs::{TrainerInputs, hf_config, note_missing_rows};
use super::memory_plan::plan_memory;
use super::run_settings::run_settings;
use super::unused_options;
use crate::job::agents::Agents;
use crate::job::device_memory::DeviceMemory;
use crate::job::disk::DiskPlan;
use crate::job::generation::{native_engine, sampling};
use crate::job::inputs::{RunInputs, find_inputs};
use crate::job::memory_estimate::GIB;
use crate::job::models::{is_bfloat16, learner, model_init};
use crate::job::problems::Problems;
use crate::job::rank_device::rank_device;
use crate::job::sharding_plan::ShardingPlan;
use crate::job::sources::NamedFiles;
use crate::job::words::ToLayer;
use crate::job::{Run, RunSettings, lora_settings, template_date};
use crate::trainer::advantages::Advantages;
use crate::trainer::algorithms::RunEstimator;
use crate::trainer::learning::{LearningSide, reference_model, teacher};
use crate::trainer::sampling::discarded::DiscardedGroups;
use crate::trainer::sampling::{SamplingSide, crc_of};
use crate::trainer::{Trainer, algorithms};
use burnish_algorithm::advantage::RoleBaselines;
use burnish_algorithm::{aggregate, kl};
use burnish_config::Loaded;
use burnish_config::schema::{Device, KlControllerKind, PpoConfig};
use burnish_distributed::Ranks;
use burnish_model::CausalLm;
use burnish_model::memory::ElementCount;
use burnish_run::Output;
use burnish_util::interrupt::Interrupt;

/// Builds everything that a run needs and finds the checkpoint that it resumes from. Writes only the run's folder. `interrupt`:
/// asks the run to stop.
///
/// # Errors
/// If a setting, a file or a checkpoint does not fit, with its key.
pub fn start(mut loaded: Loaded<PpoConfig>, output: &Output, interrupt: Interrupt, ranks: Ranks) -> Result<Run<Trainer>> {
    ranks.group().set_patience(Duration::from_secs(loaded.config.actor_rollout_ref.nccl_timeout));
    // The ranks of a machine share its workers.
    let workers = &mut loaded.config.reward.num_workers;
    *workers = workers.div_ceil(ranks.group().local().1);
    let device = rank_device(loaded.config.trainer.device, &ranks);
    let (trainer, mut settings, (needed, phase), disk) = ranks.agree(build(&mut loaded, device, &interrupt, &ranks))?;
    let named = NamedFiles::new(&mut loaded.config, &loaded.tree);
    settings.compared.sources = ranks.first(|| ranks.at_work(|| named.checksums()))?;
    let run = Run::start(trainer, settings, &loaded.tree, output, interrupt, ranks)?;
    tracing::info!("memory: about {:.2} GiB at most, in: {phase} (--dry-run has the parts)", needed as f64 / GIB);
    tracing::info!("checkpoints: {disk}");
    Ok(run)
}

/// Returns a trainer, the settings of its run, its peak memory with the phase of the peak, and the disk that checkpoints take.
/// Not collective.
fn build(
    loaded: &mut Loaded<PpoConfig>,
    device: Device,
    interrupt: &Interrupt,
    ranks: &Ranks,
) -> Result<(Trainer, RunSettings, (ElementCount, &'static str), String)> {
    let RunInputs { weights, device, inputs } = find(loaded, device, interrupt)?;
    let config = &loaded.config;
    let sharding = ShardingPlan::new(ranks, config.trainer.gradient_slices, &config.trainer.resume());
    let memory = plan_memory(config, &inputs, &sharding)?.memory;
    let mut problems = Problems::default();
    problems.note(memory.check_fits());
    let (needed, phase) = memory.peak();
    let plan = run_settings(config, inputs.steps_per_epoch, inputs.total_steps);
    let disk = DiskPlan::new(&plan, memory.checkpoint_bytes(), config.validates());
    if !config.trainer.val_only {
        problems.note(disk.check());
    }
    problems.end()?;
    template_date::note(inputs.tokenizer.date(), &mut loaded.tree);
    let ignored = unused_options::warn(&loaded.tree, config, &inputs, &sharding)?;
    if weights.are_missing() {
        // The run would refuse this only after its models are loaded.
        let mut settings = run_settings(config, inputs.steps_per_epoch, inputs.total_steps);
        settings.compared.ignored = ignored.clone();
        settings.resumed_step(&loaded.tree)?;
    }
    weights.fetch(&mut loaded.config)?;
    let config = &loaded.config;
    let mut settings = run_settings(config, inputs.steps_per_epoch, inputs.total_steps);
    let trainer = trainer(Arc::new(config.clone()), inputs, &device, ranks)?;
    settings.model = format!("{}: {}", config.actor_rollout_ref.model.path, trainer.learning.policy().size());
    settings.compared.ignored = ignored;
    Ok((trainer, settings, (needed, phase), disk.describe()))
}

/// Loads the models. Not collective.
pub(super) fn trainer(
    config: Arc<PpoConfig>,
    mut inputs: TrainerInputs,
    device: &burn::tensor::Device,
    ranks: &Ranks,
) -> Result<Trainer> {
    let advantages = advantages(&config, inputs.estimator.clone(), ranks)?;
    let critic = match inputs.plan.critic {
        Some(_) => Some(load_critic(&config, &inputs, device)?),
        None => None,
    };
    let model = load_model(&config, device)?;
    let learning = learning_side(&config, &inputs, model, critic, &advantages, ranks)?;
    let post_processing = inputs.post_processing.take();
    Ok(Trainer {
        sampling: sampling_side(&config, inputs, device, ranks)?,
        learning,
        advantages,
        post_processing,
        reported: Default::default(),
        tool_watch: Default::default(),
        gpu: DeviceMemory::watch(device),
        tokens: 0,
        config,
    })
}

/// Resolves names, opens the device and reads the inputs.
///
/// # Errors
/// All problems of these that do not depend on each other.
pub(super) fn find(loaded: &mut Loaded<PpoConfig>, device: Device, interrupt: &Interrupt) -> Result<RunInputs<TrainerInputs>> {
    let read = |loaded: &Loaded<PpoConfig>| TrainerInputs::read(&loaded.config, &loaded.tree, interrupt);
    find_inputs(loaded, device, PpoConfig::dtypes, read, note_missing_rows)
}

fn sampling_side(
    config: &Arc<PpoConfig>,
    inputs: TrainerInputs,
    device: &burn::tensor::Device,
    ranks: &Ranks,
) -> Result<SamplingSide> {
    let TrainerInputs { plan, rewards, agents, tokenizer, train, val, sampler, reward_model, rules, .. } = inputs;
    let rollout = &config.actor_rollout_ref.rollout;
    Ok(SamplingSide {
        config: config.clone(),
        ranks: ranks.clone(),
        plan,
        engine: Box::new(native_engine(&rollout.sampling())),
        stop_ids: {
            let of_format = agents.as_ref().map(Agents::stop_ids).unwrap_or_default();
            tokenizer.stop_ids(rollout.ignore_eos, &[rollout.stop_token_ids.as_slice(), &of_format].concat())
        },
        agents,
        tokenizer,
        sampling: sampling(&rollout.sampling(), config.data.max_response_length, rollout.logprobs_mode.to_layer()),
        rules,
        val_crc: crc_of(&val)?,
        train,
        val,
        sampler,
        rewards,
        reward_model: reward_model.map(|plan| plan.load(config, device)).transpose()?,
        shaping: algorithms::shaping(config),
        turn_rewards: config.algorithm.turn_rewards,
        prompt_values: None,
        discarded: DiscardedGroups::default(),
    })
}

fn learning_side(
    config: &Arc<PpoConfig>,
    inputs: &TrainerInputs,
    model: CausalLm,
    critic: Option<CausalLm>,
    advantages: &Advantages,
    ranks: &Ranks,
) -> Result<LearningSide> {
    let (actor, total_steps) = (&config.actor_rollout_ref.actor, inputs.total_steps);
    let reference = match config.has_reference() {
        true => Some(reference_model::load(config, &model.device)?.unwrap_or_else(|| model.without_adapter())),
        false => None,
    };
    let distillation = teacher::load(config, inputs, &model)?;
    let critic = critic
        .map(|model| learner(model, "critic.optim", &config.critic.optim, config.critic.grad_clip, total_steps, ranks))
        .transpose()?;
    let corrections = algorithms::corrections(config)?;
    Ok(LearningSide {
        config: config.clone(),
        plan: inputs.plan,
        actor: learner(model, "actor_rollout_ref.actor.optim", &actor.optim, actor.grad_clip, total_steps, ranks)?,
        critic,
        reference,
        distillation,
        objective: algorithms::objective(config, advantages.bypass, advantages.correction.clone())?,
        custom_loss: inputs.custom_loss.clone(),
        adaptive_entropy: algorithms::adaptive_entropy(config),
        aggregation: aggregate::find(&actor.loss_agg_mode).context("unknown loss_agg_mode")?,
        critic_aggregation: aggregate::find(&config.critic.loss_agg_mode).context("unknown loss_agg_mode")?,
        temperature: config.actor_rollout_ref.rollout.temperature as f32,
        is_to_rollout: advantages.bypass || algorithms::is_to_rollout(config),
        needs_old_log_probs: algorithms::needs_old_log_probs(config, &inputs.plan, &corrections),
        reads_sum_pi_squared: algorithms::reads_sum_pi_squared(config),
        full_kl_in_reward: advantages.kl_in_reward.as_ref().is_some_and(|(penalty, _)| penalty.is_full()),
    })
}

fn advantages(config: &Arc<PpoConfig>, estimator: Option<Arc<RunEstimator>>, ranks: &Ranks) -> Result<Advantages> {
    let algorithms::Correction { correction, bypass } = algorithms::corrections(config)?;
    let ctrl = &config.algorithm.kl_ctrl;
    let (coef, target, horizon) = (ctrl.kl_coef, ctrl.target_kl, ctrl.horizon as f64);
    let controller = match ctrl.kind {
        KlControllerKind::Fixed => kl::KlController::Fixed { coef },
        KlControllerKind::Adaptive => kl::KlController::Adaptive { coef, target, horizon },
    };
    let kl_in_reward = match config.has_kl_in_reward() {
        true => Some((kl::find(&config.algorithm.kl_penalty).context("unknown kl_penalty")?, controller)),
        false => None,
    };
    Ok(Advantages {
        config: config.clone(),
        ranks: ranks.clone(),
        estimator,
        batch_shaping: algorithms::batch_shaping(config),
        length_penalty: algorithms::length_penalty(config),
        role_baselines: RoleBaselines::default(),
        turn_rewards: config.algorithm.turn_rewards,
        kl_in_reward,
        correction,
        bypass,
        normalize: algorithms::normalize_advantages(config),
        pf_ppo: algorithms::pf_ppo(config)?,
    })
}

fn load_critic(config: &PpoConfig, inputs: &TrainerInputs, device: &burn::tensor::Device) -> Result<CausalLm> {
    let (model, seed) = (&config.critic.model, config.trainer.seed);
    let init = model_init(model.init, seed);
    let folder = model.path.as_path();
    let hf = lora_settings::read_config(&model.lora(), folder, model.override_config.clone()).context("critic.model.path")?;
    let loaded = CausalLm::load_scalar_as(folder, hf, init, Some(seed), device).context("critic.model.path")?;
    inputs.check_model(&loaded.config, config).with_context(|| format!("critic.model.path={}", model.path))?;
    let bfloat16 = is_bfloat16(model.dtype, config.trainer.device, device);
    let computing = loaded.computing(bfloat16, model.enable_gradient_checkpointing);
    lora_settings::adapt(computing, &model.lora(), model.path.as_path(), seed)
}

/// Loads the policy, with its adapter.
pub(super) fn load_model(config: &PpoConfig, device: &burn::tensor::Device) -> Result<CausalLm> {
    let model = &config.actor_rollout_ref.model;
    let init = model_init(model.init, config.trainer.seed);
    let loaded =
        CausalLm::load_as(model.path.as_path(), hf_config(model)?, init, device).context("actor_rollout_ref.model.path")?;
    let bfloat16 = is_bfloat16(model.dtype, config.trainer.device, device);
    let computing = loaded.computing(bfloat16, model.enable_gradient_checkpointing);
    lora_settings::adapt(computing, &model.lora(), model.path.as_path(), config.trainer.seed)
}
