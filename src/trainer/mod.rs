//! Reinforcement learning: sample, score, log-probs, advantages, update, validate, save — verl's order and metric names.
//!
//! [`Trainer::run`] and [`Trainer::train_step`] are the algorithm; every phase they name is one file of this folder.
//! Everything random is keyed by (seed, purpose, step, …), so a run needs no generator state to go on: resuming from step N
//! continues exactly as if the run had never stopped.

mod advantage;
mod algorithms;
mod batch;
mod clock;
mod columns;
mod critic;
mod device_memory;
pub mod dry_run;
mod generate;
mod inputs;
mod log_prob;
pub mod lora;
mod majority;
mod metrics;
mod mini_batch;
mod nonfinite;
mod parts;
mod reference;
mod resume;
mod reward_metrics;
mod reward_model;
mod rewards;
mod samples;
mod score;
mod scoring;
mod setup;
mod signal;
mod state;
pub mod template_date;
mod totals;
mod trl_metrics;
mod unused_options;
pub mod unused_training_options;
mod update;
pub mod val_metrics;
mod validate;

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Error, Result, anyhow};

pub use self::batch::Batch;
use self::clock::Clock;
pub use self::columns::{Column, Per};
use self::device_memory::DeviceMemory;
pub use self::dry_run::dry_run;
pub use self::nonfinite::report as report_nonfinite;
pub use self::parts::{check_part, has_weights, load_learner, loaded, save_learner};
pub use self::resume::{check_step, find_checkpoint, goes_on, note_finished, report_length};
pub use self::rewards::{RewardPlan, check_rows};
use self::score::Unscored;
pub use self::setup::{check_model, choices, learner, model_init, open_device, truncation};
use self::signal::Signal;
use crate::algorithm::advantage::{AdvantageOptions, Estimator, Need};
use crate::algorithm::aggregate::Aggregation;
use crate::algorithm::kl::{KlController, KlPenalty};
use crate::algorithm::loss::PolicyObjective;
use crate::algorithm::pf_ppo::Reweighting;
use crate::algorithm::reward_shaping::{NormalizeAdvantages, RewardShaping};
use crate::algorithm::rollout_correction::RolloutCorrection;
use crate::checkpoint::{Best, Checkpoints};
use crate::config::schema::Frequency;
use crate::config::{BatchPlan, PpoConfig};
use crate::data::{Prompt, Sampler, Tokenizer};
use crate::model::CausalLm;
use crate::optim::Learner;
use crate::reward::Rewards;
use crate::reward::model::RewardModel;
use crate::rollout::{Engine, Sampling};
use crate::run::Record;
use crate::tracking::{Metrics, Progress};
use crate::util::interrupt::{Interrupt, Interrupted};

/// A training run, set up from its configuration by [`Trainer::new`].
pub struct Trainer {
    config: PpoConfig,
    /// The resolved configuration, for checkpoints.
    config_yaml: String,
    plan: BatchPlan,
    actor: Learner,
    /// The value model, of estimators that need one.
    critic: Option<Learner>,
    critic_aggregation: &'static Aggregation,
    /// The frozen initial policy, where a KL term needs it; with `ref.sync_ref_model` it follows the policy.
    reference: Option<CausalLm>,
    engine: Box<dyn Engine>,
    tokenizer: Tokenizer,
    /// Tokens that end a response.
    stop_ids: Vec<u32>,
    train: Vec<Arc<Prompt>>,
    val: Vec<Arc<Prompt>>,
    /// CRC-32 of what they are, in hexadecimal.
    val_crc: String,
    /// The step after which validation measures something else than before, where this process has changed that.
    validated_after: Option<u64>,
    sampler: Sampler,
    sampling: Sampling,
    /// What the logits are divided by in every log-probability of training (`rollout.temperature`).
    temperature: f32,
    rewards: Rewards,
    reward_model: Option<RewardModel>,
    /// Numbers that a setting names and some response has had.
    reported: BTreeSet<String>,
    /// What is done to the score of each response, and then to those of a batch.
    shaping: RewardShaping,
    batch_shaping: RewardShaping,
    estimator: &'static Estimator,
    advantage_options: AdvantageOptions,
    normalize_advantages: Option<NormalizeAdvantages>,
    /// Resampling of the batch, with its exponent.
    pf_ppo: Option<(&'static Reweighting, f64)>,
    /// What is done about the difference between generation and training; `None` if nothing is.
    correction: Option<RolloutCorrection>,
    /// Whether the old policy's log-probabilities need a pass of their own.
    needs_old_log_probs: bool,
    /// Whether the policy that generated stands for the old one (`algorithm.rollout_correction.bypass_mode`).
    bypass: bool,
    objective: PolicyObjective,
    aggregation: &'static Aggregation,
    /// KL estimator and coefficient of the KL term in the rewards.
    kl_in_reward: Option<(KlPenalty, KlController)>,
    record: Record,
    signal: Signal,
    gpu: Option<DeviceMemory>,
    progress: Progress,
    checkpoints: Checkpoints,
    /// The best checkpoint, by `trainer.metric_for_best_model`.
    best: Option<Best>,
    /// The step of the last checkpoint in the run's folder that this process saved or resumed from.
    saved: Option<u64>,
    /// Whether somebody asked the run to stop.
    interrupt: Interrupt,
    /// Steps done.
    step: u64,
    /// See [`Inputs`](inputs::Inputs); at least 1.
    steps_per_epoch: u64,
    total_steps: u64,
}

impl Trainer {
    /// Trains to the last step. A resumed run goes on where its checkpoint stopped.
    ///
    /// # Errors
    /// What a step fails with, and [`Interrupted`] once the run was asked to stop: before a step has updated anything it is left as
    /// if it had not begun, later it is finished; then the state is saved, whatever `trainer.save_freq` is.
    pub fn run(mut self) -> Result<()> {
        self.record.heed(&self.interrupt);
        let result = self.train();
        let saved = self.saved.map(|step| self.checkpoints.path(step));
        self.record.silent(self.signal.verdict(self.step));
        self.record.end(self.step, saved.as_deref(), &result);
        result
    }

    fn train(&mut self) -> Result<()> {
        self.progress.start(self.step, self.total_steps);
        // A resumed run has its first validation behind it; validation alone is wanted at any step.
        if self.config.trainer.val_only || self.step == 0 && self.config.trainer.val_before_train {
            self.record.stage().enter("testing");
            let metrics = match self.validate() {
                Err(error) if error.is::<Interrupted>() => return self.stop(),
                result => result?,
            };
            if let Some(metric) = &self.config.trainer.metric_for_best_model {
                Best::value_of(metric, metrics.iter())?;
            }
            self.log(&metrics);
        }
        let last = if self.config.trainer.val_only { self.step } else { self.total_steps };
        let mut save_time = None;
        while self.step < last {
            if self.interrupt.asked() {
                return self.stop();
            }
            let before = self.state();
            self.step += 1;
            self.record.stage().step(self.step);
            let mut metrics = match self.train_step() {
                Err(error) if error.is::<Interrupted>() => {
                    self.set_state(before)?;
                    return self.stop();
                }
                Err(error) if error.is::<Unscored>() => {
                    self.set_state(before)?;
                    return Err(self.saving(error));
                }
                result => result?,
            };
            if self.is_due(self.config.trainer.test_freq) {
                let mut clock = Clock::start(self.record.stage());
                let validation = match clock.time("testing", || self.validate()) {
                    Err(error) if error.is::<Unscored>() || error.is::<Interrupted>() => {
                        self.report_rewards(&mut metrics);
                        self.log(&metrics);
                        tracing::warn!("step {} is not validated; trainer.val_only=true does so", self.step);
                        return if error.is::<Interrupted>() { self.stop() } else { Err(self.saving(error)) };
                    }
                    result => result?,
                };
                self.follow_best(&validation)?;
                metrics.extend(validation);
                clock.report(&mut metrics);
            }
            // Saving comes after the row is written, so that a checkpoint never holds a step whose row could be lost; its
            // time is reported with the next row.
            metrics.extend(save_time.take().map(|seconds: f64| ("timing_s/save_checkpoint", seconds)));
            self.report_rewards(&mut metrics);
            self.log(&metrics);
            let reward = metrics.get("critic/score/mean").unwrap_or(f64::NAN);
            self.progress.update(self.step, ("reward", reward), metrics.get("perf/throughput").unwrap_or(0.0));
            if self.is_due(self.config.trainer.save_freq) {
                let mut clock = Clock::start(self.record.stage());
                clock.time("save_checkpoint", || self.save())?;
                save_time = clock.seconds("save_checkpoint");
            }
        }
        // Without save_freq, a run that went on from its own checkpoint would leave that as its last state, and the same command would do
        // the steps after it again.
        if !self.config.trainer.val_only && self.saved.is_some_and(|saved| saved < self.step) {
            self.save()?;
        }
        Ok(())
    }

    /// The row of this step.
    fn log(&mut self, metrics: &Metrics) {
        self.record.log(self.step, trl_metrics::named(metrics.clone(), self.config.trainer.metric_names));
    }

    /// The error that ends a run between two steps, whose state is saved, whatever `trainer.save_freq` is: what is done is not lost.
    fn saving(&mut self, error: Error) -> Error {
        let step = self.step;
        if step == 0 || self.config.trainer.val_only {
            return error;
        }
        if self.saved != Some(step)
            && let Err(failed) = self.save()
        {
            return anyhow!("{error:#}\nthe state after step {step} cannot be saved: {failed:#}");
        }
        anyhow!("{error:#}\nthe state after step {step} is saved; {}", self.goes_on())
    }

    /// How a run goes on from the step it has just saved.
    fn goes_on(&self) -> String {
        goes_on(self.config.trainer.resume_mode, &self.checkpoints.path(self.step))
    }

    /// Ends a run that was asked to stop, with every step done whole.
    fn stop(&mut self) -> Result<()> {
        let step = self.step;
        if step == 0 {
            return Err(Interrupted("interrupted before the first step; the same command starts again".to_owned()).into());
        }
        if self.saved != Some(step) {
            self.save()?;
        }
        Err(Interrupted(format!("interrupted after step {step}; {}", self.goes_on())).into())
    }

    /// One iteration of the algorithm. Until the update, what it changes is in [`State`](state::State).
    fn train_step(&mut self) -> Result<Metrics> {
        let mut clock = Clock::start(self.record.stage());
        let mut metrics = Metrics::new();
        metrics.set("training/global_step", self.step as f64);
        let mut batch = self.rollout(&mut clock, &mut metrics)?;
        metrics.set("training/epoch", ((self.step - 1) / self.steps_per_epoch) as f64);
        if self.estimator.needs(Need::GreedyBaseline) {
            clock.time("gen_max", || self.greedy_baselines(&mut batch))?;
            self.interrupt.check()?;
        }
        if self.config.algorithm.mask_truncated_completions {
            batch.mask_truncated();
        }
        if self.needs_old_log_probs {
            clock.time("old_log_prob", || self.old_log_probs(&mut batch, &mut metrics));
            self.interrupt.check()?;
        }
        if self.reference.is_some() {
            clock.time("ref", || self.reference_log_probs(&mut batch));
        }
        if self.critic.is_some() {
            clock.time("values", || self.values(&mut batch));
        }
        self.check_columns(&mut batch, &mut metrics)?;
        clock.time("adv", || self.advantages(&mut batch, &mut metrics))?;
        self.check_columns(&mut batch, &mut metrics)?;
        self.interrupt.check()?;
        if self.critic.is_some() {
            clock.time("update_critic", || {
                self.update_critic(&batch, &mut metrics)?;
                self.wait()
            })?;
        }
        if self.step >= self.first_actor_step() {
            clock.time("update_actor", || {
                self.update_actor(&batch, &mut metrics)?;
                self.wait()
            })?;
            self.sync_reference();
        }
        self.dump(&batch)?;
        self.show_completions(&batch)?;

        metrics::of_batch(&batch, self.config.data.max_prompt_length, self.config.data.max_response_length, &mut metrics);
        let grad_norm = metrics.get("actor/grad_norm").filter(|_| self.config.actor_rollout_ref.actor.calculate_sum_pi_squared);
        if let Some(grad_norm) = grad_norm {
            metrics::variance_proxy(&batch, grad_norm, &mut metrics);
        }
        if self.step >= self.first_actor_step() {
            self.signal.follow(self.step, signal::missing(&batch, self.estimator, &metrics), &metrics);
        }
        clock.report_step(&batch, self.gpu.as_ref(), &mut metrics);
        trl_metrics::of_batch(&batch, self.step * self.plan.trajectories_per_step as u64, &mut metrics);
        Ok(metrics)
    }

    /// The first step that updates the actor: with `trainer.critic_warmup` the critic learns alone until then.
    fn first_actor_step(&self) -> u64 {
        (self.config.trainer.critic_warmup as u64).max(1)
    }

    /// Whether nothing is left to train.
    fn is_done(&self) -> bool {
        self.step == self.total_steps
    }

    /// A GPU works behind the host: what it was told in a phase belongs to the phase's time.
    fn wait(&self) -> Result<()> {
        self.actor.model.device.sync().map_err(|e| anyhow!("the device failed: {e:?}"))
    }

    /// Whether something done so often is due after this step.
    fn is_due(&self, frequency: Frequency) -> bool {
        frequency.is_due(self.step, self.total_steps, self.steps_per_epoch)
    }
}
