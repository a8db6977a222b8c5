//! From a configuration to a [`Trainer`]: every name resolved, every file read, every mistake reported before the first step.

use std::time::SystemTime;

use anyhow::{Context, Result, bail};

use super::Trainer;
use super::device_memory::DeviceMemory;
use super::inputs::Inputs;
use super::parts::has_weights;
use super::{algorithms, dry_run, find_checkpoint, lora, note_finished, resume, template_date, unused_options};
use crate::algorithm::{advantage, aggregate, kl, policy_loss};
use crate::checkpoint::{Checkpoints, step_of};
use crate::config::schema::{self, Device, Init, KlControllerKind, OptimConfig, PpoConfig};
use crate::config::{Loaded, Tree};
use crate::data::{Tokenizer, Truncation};
use crate::model::{self, CausalLm, DecoderConfig};
use crate::optim::{AdamW, AdamWConfig, Learner, Schedule, schedule};
use crate::reward;
use crate::rollout::{Logprobs, NativeEngine, Sampling};
use crate::run::{Output, Record, RunInfo, Watched};
use crate::tracking::{Session, TRACKERS};
use crate::util::interrupt::Interrupt;

/// The names that registries give to keys of the configuration, for its validation.
pub fn choices() -> Vec<(&'static str, Vec<String>)> {
    let names = |names: Vec<&'static str>| names.into_iter().map(str::to_owned).collect();
    vec![
        ("algorithm.adv_estimator", names(advantage::names())),
        ("algorithm.kl_penalty", kl::names()),
        ("actor_rollout_ref.actor.kl_loss_type", kl::names()),
        ("actor_rollout_ref.actor.policy_loss.loss_mode", names(policy_loss::names())),
        ("actor_rollout_ref.actor.loss_agg_mode", names(aggregate::names())),
        ("actor_rollout_ref.actor.optim.lr_scheduler_type", names(schedule::names())),
        ("critic.loss_agg_mode", names(aggregate::names())),
        ("critic.optim.lr_scheduler_type", names(schedule::names())),
        ("reward_model.reward_functions", names([reward::function_names(), vec![schema::REMOTE]].concat())),
        ("trainer.logger", TRACKERS.iter().map(|t| t.name.to_owned()).collect()),
    ]
}

impl Trainer {
    /// Builds everything a run needs and finds the checkpoint it goes on from. Nothing is trained or written yet, but for
    /// the run's folder. Whoever holds `interrupt` can ask the run to stop.
    pub fn new(mut loaded: Loaded<PpoConfig>, output: Output, interrupt: Interrupt) -> Result<Self> {
        let config = loaded.config;
        let device = open_device(config.trainer.device)?;
        let inputs = Inputs::read(&config, &interrupt)?;
        template_date::note(inputs.tokenizer.date(), &mut loaded.tree);
        let critic = match inputs.plan.critic {
            Some(_) => Some(load_critic(&config, &inputs, &device)?),
            None => None,
        };
        let (needed, phase) = dry_run::estimate(&config, &inputs)?.memory.peak();
        unused_options::warn(&loaded.tree, &config, &inputs)?;
        let Inputs { plan, rewards, tokenizer, train, val, sampler, steps_per_epoch, total_steps, reward_model } = inputs;
        let actor_config = &config.actor_rollout_ref.actor;
        let rollout = &config.actor_rollout_ref.rollout;

        let model = load_model(&config, &device)?;
        let reward_model = reward_model.map(|plan| plan.load(&config, &device)).transpose()?;
        let needs_reference = actor_config.use_kl_loss || config.algorithm.use_kl_in_reward;
        let reference = needs_reference.then(|| model.without_adapter());

        let actor = learner(model, &actor_config.optim, actor_config.grad_clip, total_steps)?;
        let critic =
            critic.map(|model| learner(model, &config.critic.optim, config.critic.grad_clip, total_steps)).transpose()?;
        let corrections = algorithms::corrections(&config)?;
        let needs_old_log_probs = algorithms::needs_old_log_probs(&config, &plan, &corrections);
        let algorithms::Correction { correction, bypass } = corrections;
        let objective = algorithms::objective(&config, bypass, correction.clone())?;
        let ctrl = &config.algorithm.kl_ctrl;
        let kind = match ctrl.kind {
            KlControllerKind::Fixed => "fixed",
            KlControllerKind::Adaptive => "adaptive",
        };
        let kl_in_reward = match config.algorithm.use_kl_in_reward {
            true => Some((
                kl::find(&config.algorithm.kl_penalty).context("unknown kl_penalty")?,
                kl::KlController::new(kind, ctrl.kl_coef, ctrl.target_kl, ctrl.horizon as f64)?,
            )),
            false => None,
        };

        let dir = config.trainer.default_local_dir.as_path();
        // Validation alone leaves a run's folder as it is, and does not wait for it.
        let mut checkpoints = match config.trainer.val_only {
            true => Checkpoints::look(dir),
            false => Checkpoints::new(dir, config.trainer.max_actor_ckpt_to_keep)?,
        };
        let resume = find_checkpoint(&mut checkpoints, config.trainer.resume_mode, config.trainer.resume_from_path.as_ref())?;
        let resumed_step = resume.as_deref().map(step_of).transpose()?;
        let watched =
            Watched { metric: config.trainer.metric_for_best_model.clone(), greater_is_better: config.trainer.greater_is_better };
        let session = Session {
            project: config.trainer.project_name.clone(),
            experiment: config.trainer.experiment_name.clone(),
            run_id: String::new(),
            dir: config.trainer.default_local_dir.as_path().to_owned(),
            resumed_step,
            total_steps,
            started: SystemTime::now(),
            config: loaded.tree.to_json(),
            python: config.reward.python.to_string(),
            wandb_proxy: config.trainer.wandb_proxy.clone(),
            progress: output.progress.clone(),
        };
        let mut trainer = Self {
            sampling: Sampling {
                temperature: if rollout.do_sample { rollout.temperature as f32 } else { 0.0 },
                top_k: usize::try_from(rollout.top_k).unwrap_or(0),
                top_p: rollout.top_p as f32,
                min_p: rollout.min_p as f32,
                repetition_penalty: rollout.repetition_penalty as f32,
                min_tokens: rollout.min_tokens,
                logprobs: match rollout.logprobs_mode {
                    schema::LogprobsMode::Processed => Logprobs::Processed,
                    schema::LogprobsMode::Raw => Logprobs::Raw,
                },
                max_tokens: config.data.max_response_length,
            },
            temperature: rollout.temperature as f32,
            stop_ids: tokenizer.stop_ids(rollout.ignore_eos, &rollout.stop_token_ids),
            shaping: algorithms::shaping(&config),
            batch_shaping: algorithms::batch_shaping(&config),
            advantage_options: algorithms::advantage_options(&config),
            normalize_advantages: algorithms::normalize_advantages(&config),
            pf_ppo: algorithms::pf_ppo(&config)?,
            rewards,
            reward_model,
            reported: Default::default(),
            correction,
            bypass,
            needs_old_log_probs,
            engine: Box::new(NativeEngine {
                max_num_seqs: rollout.max_num_seqs,
                max_num_batched_tokens: rollout.max_num_batched_tokens,
                max_model_len: rollout.max_model_len,
            }),
            estimator: advantage::find(&config.algorithm.adv_estimator).context("unknown adv_estimator")?,
            aggregation: aggregate::find(&actor_config.loss_agg_mode).context("unknown loss_agg_mode")?,
            critic_aggregation: aggregate::find(&config.critic.loss_agg_mode).context("unknown loss_agg_mode")?,
            plan,
            actor,
            critic,
            reference,
            tokenizer,
            train,
            val_crc: resume::crc_of(&val)?,
            validated_after: None,
            val,
            sampler,
            objective,
            kl_in_reward,
            record: Record::none(&session, watched.clone(), &output)?,
            signal: Default::default(),
            gpu: DeviceMemory::watch(&device),
            progress: output.progress.clone(),
            checkpoints,
            best: None,
            saved: None,
            interrupt,
            step: 0,
            steps_per_epoch: steps_per_epoch.max(1),
            total_steps,
            config_yaml: loaded.tree.to_yaml(),
            config,
        };
        if let Some(folder) = resume {
            trainer.restore(&folder, &loaded.tree).with_context(|| format!("cannot resume from {}", folder.display()))?;
            tracing::info!("resumed from {}", folder.display());
        }
        // Last: opening a metrics file drops the rows that this run will write again. Validation alone is not a run, and
        // leaves the files of one as they are; so does a command that finds nothing left to train.
        if trainer.config.trainer.val_only {
            tracing::info!("trainer.val_only=true: metrics go to the console alone");
        } else if trainer.is_done() {
            note_finished(trainer.checkpoints.dir(), total_steps);
        } else {
            let info = trainer.info(&loaded.tree);
            trainer.record = Record::begin(info, session, &trainer.config.trainer.logger.0, watched, &output)?;
        }
        trainer.announce();
        tracing::info!("memory: about {:.2} GiB at most, in: {phase} (--dry-run has the parts)", needed as f64 / dry_run::GIB);
        Ok(trainer)
    }

    /// What the run is.
    fn info(&self, tree: &Tree) -> RunInfo {
        let trainer = &self.config.trainer;
        RunInfo {
            device: trainer.device.to_string(),
            model: format!("{}: {}", self.config.actor_rollout_ref.model.path, self.actor.model.size()),
            validated_after: self.validated_after,
            ..RunInfo::new("ppo", &trainer.project_name, &trainer.experiment_name).with_settings(tree.settings())
        }
    }

    /// What is about to happen, in a few lines.
    fn announce(&self) {
        tracing::info!(
            "{}: {} on {}; {} training and {} validation prompts",
            self.config.actor_rollout_ref.model.path,
            self.actor.model.size(),
            self.config.trainer.device,
            self.train.len(),
            self.val.len()
        );
        tracing::info!(
            "{}; {} steps, {} per epoch of {} prompts",
            self.plan,
            self.total_steps,
            self.steps_per_epoch,
            self.train.len()
        );
        if self.config.trainer.save_freq.is_never() {
            let save_freq = self.config.trainer.save_freq;
            tracing::info!("trainer.save_freq={save_freq}: no checkpoint will be saved, unless the run is interrupted");
        }
        let actor = ("actor_rollout_ref.actor", &self.config.actor_rollout_ref.actor.checkpoint);
        let critic = self.critic.as_ref().map(|_| ("critic", &self.config.critic.checkpoint));
        for (group, checkpoint) in std::iter::once(actor).chain(critic) {
            if !has_weights(&checkpoint.save_contents) {
                tracing::warn!(
                    "{group}.checkpoint.save_contents has no `model`: such checkpoints can neither be exported nor resumed as they were"
                );
            }
        }
        let warmup = self.config.trainer.critic_warmup as u64;
        if warmup > self.total_steps {
            tracing::warn!(
                "trainer.critic_warmup={warmup} is beyond the last step, {}: the policy is not trained",
                self.total_steps
            );
        }
        let val = &self.config.actor_rollout_ref.rollout.val_kwargs;
        let greedy = val.temperature == 0.0;
        if !val.do_sample && !greedy {
            tracing::warn!(
                "rollout.val_kwargs.do_sample=false has no effect beside temperature={}: validation samples, as in verl 0.7 and later; \
                 val_kwargs.temperature=0 takes the likeliest tokens",
                val.temperature
            );
        }
        if val.do_sample && greedy {
            tracing::warn!("rollout.val_kwargs.do_sample=true has no effect with temperature=0: set a temperature above 0");
        }
        if val.n > 1 && greedy {
            tracing::warn!(
                "rollout.val_kwargs.n={} with temperature=0: the responses to a prompt are all the same, and best@, worst@ and maj@ are the \
                 mean; set val_kwargs.temperature above 0, or n=1",
                val.n
            );
        }
        if self.config.algorithm.use_kl_in_reward && self.config.actor_rollout_ref.actor.use_kl_loss {
            tracing::warn!("both algorithm.use_kl_in_reward and actor.use_kl_loss are set: the KL term counts twice");
        }
        let (actor, algorithm) = (&self.config.actor_rollout_ref.actor, &self.config.algorithm);
        let fixed = algorithm.kl_ctrl.kind == KlControllerKind::Fixed;
        for (measured, coef, switch) in [
            (actor.use_kl_loss && actor.kl_loss_coef == 0.0, "actor.kl_loss_coef", "actor.use_kl_loss"),
            (
                algorithm.use_kl_in_reward && fixed && algorithm.kl_ctrl.kl_coef == 0.0,
                "algorithm.kl_ctrl.kl_coef",
                "algorithm.use_kl_in_reward",
            ),
        ] {
            if measured {
                tracing::info!("{coef}=0: the KL is measured and not used; {switch}=false saves the reference and its pass");
            }
        }
    }
}

/// A model with an optimizer and its schedule.
pub fn learner(model: CausalLm, optim: &OptimConfig, grad_clip: f64, total_steps: u64) -> Result<Learner> {
    Ok(Learner {
        model: model.trainable(),
        optimizer: AdamW::new(AdamWConfig {
            beta1: optim.betas[0],
            beta2: optim.betas[1],
            eps: optim.eps,
            weight_decay: optim.weight_decay,
        }),
        schedule: schedule(optim, total_steps)?,
        lr: optim.lr,
        grad_clip,
    })
}

/// The learning rates of a run of `total_steps`.
pub fn schedule(optim: &OptimConfig, total_steps: u64) -> Result<Schedule> {
    let schedule_steps = optim.schedule_steps(total_steps as usize);
    Ok(Schedule {
        kind: schedule::find(&optim.lr_scheduler_type).context("unknown lr_scheduler_type")?,
        warmup_steps: schedule::warmup_steps(optim.lr_warmup_steps, optim.lr_warmup_steps_ratio, schedule_steps),
        total_steps: schedule_steps,
        min_lr_ratio: optim.min_lr_ratio,
        num_cycles: optim.num_cycles,
    })
}

fn load_critic(config: &PpoConfig, inputs: &Inputs, device: &burn::tensor::Device) -> Result<CausalLm> {
    let (model, seed) = (&config.critic.model, config.trainer.seed);
    let init = model_init(model.init, seed);
    let loaded = CausalLm::load_scalar(model.path.as_path(), init, Some(seed), device).context("critic.model.path")?;
    inputs.check_model(&loaded.config, config).with_context(|| format!("critic.model.path={}", model.path))?;
    let bfloat16 = model.dtype.is_bfloat16(config.trainer.device);
    let computing = loaded.computing(bfloat16, model.enable_gradient_checkpointing);
    lora::adapt(computing, &model.lora(), model.path.as_path(), seed)
}

fn load_model(config: &PpoConfig, device: &burn::tensor::Device) -> Result<CausalLm> {
    let model = &config.actor_rollout_ref.model;
    let init = model_init(model.init, config.trainer.seed);
    let loaded = CausalLm::load(model.path.as_path(), init, device).context("actor_rollout_ref.model.path")?;
    let bfloat16 = model.dtype.is_bfloat16(config.trainer.device);
    let computing = loaded.computing(bfloat16, model.enable_gradient_checkpointing);
    lora::adapt(computing, &model.lora(), model.path.as_path(), config.trainer.seed)
}

/// The model layer's name for an `init`.
pub fn model_init(init: Init, seed: u64) -> model::Init {
    match init {
        Init::Pretrained => model::Init::Pretrained,
        Init::Random => model::Init::Random { seed },
    }
}

/// Refuses a tokenizer with more tokens than the model knows, and sequences longer than it has positions for.
/// `shorten`: the keys to lower in the latter case.
pub fn check_model(model: &DecoderConfig, tokenizer: &Tokenizer, longest: usize, shorten: &str) -> Result<()> {
    let (tokens, rows) = (tokenizer.vocab_size(), model.vocab_size);
    if tokens > rows {
        let new = tokenizer.new_tokens().map_or(String::new(), |new| {
            format!("; tokenizer.json does not have all that the files beside it name: {new}; take those names away, or add rows to the model")
        });
        bail!("the tokenizer has {tokens} tokens, the model an embedding for {rows}{new}");
    }
    let limit = model.max_position_embeddings;
    if longest > limit {
        bail!("a sequence may have {longest} tokens, the model's max_position_embeddings is {limit}; lower {shorten}");
    }
    Ok(())
}

/// The burn device of `trainer.device`.
pub fn open_device(device: Device) -> Result<burn::tensor::Device> {
    model::device::open(match device {
        Device::Cpu => None,
        Device::Cuda(index) => Some(index),
    })
}

/// The data layer's name for `data.truncation`.
pub fn truncation(truncation: schema::Truncation) -> Truncation {
    match truncation {
        schema::Truncation::Error => Truncation::Error,
        schema::Truncation::Left => Truncation::Left,
        schema::Truncation::Right => Truncation::Right,
        schema::Truncation::Middle => Truncation::Middle,
    }
}
