//! Reinforcement learning: sample, score, log-probs, advantages, update, validate, save — verl's order and metric names.
//!
//! [`Trainer::run`] and [`Trainer::train_step`] are the algorithm; every phase they name is one file of this folder.
//! Everything random is keyed by (seed, purpose, step, …), so a run needs no generator state to go on: resuming from step N
//! continues exactly as if the run had never stopped.

mod advantage;
mod algorithms;
mod batch;
mod clock;
mod critic;
mod device_memory;
pub mod dry_run;
mod generate;
pub mod idle;
mod inputs;
mod log_prob;
pub mod lora;
mod majority;
mod metrics;
mod mini_batch;
mod reference;
mod score;
mod setup;
mod state;
mod totals;
mod trl_metrics;
mod update;
pub mod val_metrics;
mod validate;

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Result, anyhow};

pub use self::batch::Batch;
use self::clock::Clock;
use self::device_memory::DeviceMemory;
pub use self::dry_run::dry_run;
pub use self::setup::{check_model, check_step, choices, find_checkpoint, open_device, truncation};
use crate::algorithm::advantage::{AdvantageOptions, Estimator, Need};
use crate::algorithm::aggregate::Aggregation;
use crate::algorithm::kl::{KlController, KlPenalty};
use crate::algorithm::loss::PolicyObjective;
use crate::algorithm::pf_ppo::Reweighting;
use crate::algorithm::reward_shaping::{NormalizeAdvantages, RewardShaping};
use crate::algorithm::rollout_correction::RolloutCorrection;
use crate::checkpoint::Checkpoints;
use crate::config::{BatchPlan, PpoConfig};
use crate::data::{Prompt, Sampler, Tokenizer};
use crate::model::CausalLm;
use crate::optim::Learner;
use crate::reward::Rewards;
use crate::rollout::{Engine, Sampling};
use crate::tracking::{Metrics, Progress, Tracker, Trackers};

/// A training run, set up from its configuration by [`Trainer::new`].
pub struct Trainer {
    config: PpoConfig,
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
    sampler: Sampler,
    sampling: Sampling,
    /// What the logits are divided by in every log-probability of training (`rollout.temperature`).
    temperature: f32,
    rewards: Rewards,
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
    trackers: Trackers,
    gpu: Option<DeviceMemory>,
    progress: Progress,
    checkpoints: Checkpoints,
    /// Steps done.
    step: u64,
    total_steps: u64,
}

impl Trainer {
    /// Trains to the last step. A resumed run goes on where its checkpoint stopped.
    pub fn run(mut self) -> Result<()> {
        // A resumed run has its first validation behind it; validation alone is wanted at any step.
        if self.config.trainer.val_only || self.step == 0 && self.config.trainer.val_before_train {
            let metrics = self.validate()?;
            self.trackers.log(self.step, &metrics)?;
        }
        let last = if self.config.trainer.val_only { self.step } else { self.total_steps };
        self.progress.start(self.step, self.total_steps);
        let mut save_time = None;
        while self.step < last {
            self.step += 1;
            let mut metrics = self.train_step()?;
            if self.is_due(self.config.trainer.test_freq) {
                let mut clock = Clock::start();
                metrics.extend(clock.time("testing", || self.validate())?);
                clock.report(&mut metrics);
            }
            // Saving comes after the row is written, so that a checkpoint never holds a step whose row could be lost; its
            // time is reported with the next row.
            metrics.extend(save_time.take().map(|seconds: f64| ("timing_s/save_checkpoint", seconds)));
            self.trackers.log(self.step, &trl_metrics::named(metrics.clone(), self.config.trainer.metric_names))?;
            let reward = metrics.get("critic/score/mean").unwrap_or(f64::NAN);
            self.progress.update(self.step, ("reward", reward), metrics.get("perf/throughput").unwrap_or(0.0));
            if self.is_due(self.config.trainer.save_freq) {
                let mut clock = Clock::start();
                clock.time("save_checkpoint", || self.save())?;
                save_time = clock.seconds("save_checkpoint");
            }
        }
        self.progress.finish();
        self.trackers.finish()
    }

    /// One iteration of the algorithm.
    fn train_step(&mut self) -> Result<Metrics> {
        let mut clock = Clock::start();
        let mut metrics = Metrics::new();
        metrics.set("training/global_step", self.step as f64);
        let mut batch = self.rollout(&mut clock, &mut metrics)?;
        metrics.set("training/epoch", self.sampler.state().epoch as f64);
        if self.estimator.needs(Need::GreedyBaseline) {
            clock.time("gen_max", || self.greedy_baselines(&mut batch))?;
        }
        if self.config.algorithm.mask_truncated_completions {
            batch.mask_truncated();
        }
        if self.needs_old_log_probs {
            clock.time("old_log_prob", || self.old_log_probs(&mut batch, &mut metrics));
        }
        if self.reference.is_some() {
            clock.time("ref", || self.reference_log_probs(&mut batch));
        }
        if self.critic.is_some() {
            clock.time("values", || self.values(&mut batch));
        }
        clock.time("adv", || self.advantages(&mut batch, &mut metrics))?;
        if self.critic.is_some() {
            clock.time("update_critic", || {
                self.update_critic(&batch, &mut metrics);
                self.wait()
            })?;
        }
        if self.step >= self.first_actor_step() {
            clock.time("update_actor", || {
                self.update_actor(&batch, &mut metrics);
                self.wait()
            })?;
            self.sync_reference();
        }
        self.dump(&batch)?;

        metrics::of_batch(&batch, self.config.data.max_prompt_length, self.config.data.max_response_length, &mut metrics);
        if self.config.actor_rollout_ref.actor.calculate_sum_pi_squared {
            metrics::variance_proxy(&batch, metrics.get("actor/grad_norm").unwrap_or(0.0), &mut metrics);
        }
        clock.report_step(&batch, self.gpu.as_ref(), &mut metrics);
        trl_metrics::of_batch(&batch, self.step * self.plan.trajectories_per_step as u64, &mut metrics);
        Ok(metrics)
    }

    /// The first step that updates the actor: with `trainer.critic_warmup` the critic learns alone until then.
    fn first_actor_step(&self) -> u64 {
        (self.config.trainer.critic_warmup as u64).max(1)
    }

    /// A GPU works behind the host: what it was told in a phase belongs to the phase's time.
    fn wait(&self) -> Result<()> {
        self.actor.model.device.sync().map_err(|e| anyhow!("the device failed: {e:?}"))
    }

    /// Whether something done every `freq` steps, and at the last, is due; never if `freq` is not positive.
    fn is_due(&self, freq: i64) -> bool {
        freq > 0 && (self.step == self.total_steps || self.step.is_multiple_of(freq as u64))
    }
}
