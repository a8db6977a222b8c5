//! Reinforcement learning: sample, score, log-probs, advantages, update, validate — verl's order and metric names.
//!
//! [`Trainer::step`](Pipeline::step) is the algorithm; [`crate::job::Run`] repeats it, validates, logs, saves and resumes. A step
//! has two sides: `sampling` turns prompts into scored responses, `learning` holds the models and updates them. Between them,
//! `advantages` turns scores into advantages. Each phase shows in its signature what it reads and writes. Everything random is
//! keyed by (seed, purpose, step, …), so a resumed run continues exactly as if it had never stopped.

mod advantages;
mod algorithms;
mod batch;
mod learning;
mod metrics;
pub mod sampling;
pub mod setup;
mod state;

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};

pub use self::algorithms::{choices, options};

use self::advantages::Advantages;
use self::batch::{nonfinite, post_processing};
use self::learning::LearningSide;
use self::metrics::agent_metrics::{self, ToolWatch};
use self::metrics::{timing, trl_metrics};
use self::sampling::samples::UsedSamples;
use self::sampling::{ReportedNames, SamplingSide, samples};
use self::state::{TrainerState, nothing_updated};
use crate::job::clock::StepClock;
use crate::job::device_memory::DeviceMemory;
use crate::job::{Context, Pipeline};
use burnish_algorithm::advantage::Need;
use burnish_checkpoint::Changes;
use burnish_config::PpoConfig;
use burnish_data::{Sampler, SamplerState};
use burnish_optim::StatePart;
use burnish_reward::python::PythonPostProcessing;
use burnish_tracking::Metrics;

/// Reinforcement learning of one policy, set up from its configuration by [`setup::start`].
pub struct Trainer {
    config: Arc<PpoConfig>,
    sampling: SamplingSide,
    learning: LearningSide,
    advantages: Advantages,
    post_processing: Option<PythonPostProcessing>,
    reported: ReportedNames,
    tool_watch: ToolWatch,
    gpu: Option<DeviceMemory>,
    /// Tokens of all prompts and responses trained on since the start of the run.
    tokens: u64,
}

impl Pipeline for Trainer {
    type State = TrainerState;

    /// Runs one iteration of the algorithm.
    fn step(&mut self, at: &mut Context) -> Result<Metrics> {
        let Self { config, sampling, learning, advantages, post_processing, reported, .. } = self;
        let mut clock = StepClock::start(at.record.stage());
        let mut metrics = Metrics::new();
        metrics.set("training/global_step", at.step as f64);
        if advantages.needs(Need::PromptValue) && sampling.prompt_values.is_none() {
            if at.step > 1 && !learning.has_reference() {
                tracing::warn!(
                    "step {}: the trained policy estimates the values of prompts, since the run has no reference",
                    at.step
                );
            }
            let model = learning.initial_policy();
            clock.time("prompt_values", || sampling.estimate_prompt_values(model, &advantages.batch_shaping, at))?;
        }
        let mut batch = sampling.rollout(learning.policy(), reported, at, &mut clock, &mut metrics)?;
        if let Some(function) = post_processing {
            let processed = clock.time("post_processing", || post_processing::process(function, &mut batch, at, &mut metrics));
            processed.map_err(|error| nothing_updated(error, at.step))?;
            nonfinite::check_scores(&mut batch, at).with_context(|| format!("{}={}", post_processing::PATH, function.path()))?;
        }
        metrics.set("training/epoch", ((at.step - 1) / at.settings.steps_per_epoch) as f64);
        if advantages.needs(Need::PromptValue) {
            sampling.value_baselines(&mut batch, &mut metrics)?;
        }
        if advantages.needs(Need::GreedyBaseline) {
            clock.time("gen_max", || sampling.greedy_baselines(learning.policy(), &advantages.batch_shaping, &mut batch, at))?;
            at.check_interrupt()?;
        }
        if config.algorithm.mask_truncated_completions {
            batch.mask_truncated();
        }
        if learning.needs_old_log_probs() {
            clock.time("old_log_prob", || learning.old_log_probs(&mut batch, &mut metrics));
            at.check_interrupt()?;
        }
        if learning.has_reference() {
            clock.time("ref", || learning.reference_log_probs(&mut batch));
        }
        if learning.reprompts() {
            learning.reprompt(&mut batch, &sampling.tokenizer, &mut metrics)?;
        }
        if learning.has_teacher_pass() {
            clock.time("teacher", || learning.teacher_log_probs(&mut batch));
        }
        if learning.has_critic() {
            clock.time("values", || learning.values(&mut batch));
        }
        nonfinite::check_columns(&mut batch, at, &mut metrics)?;
        if config.algorithm.echo.enable && config.actor_rollout_ref.rollout.conversations().has_any() {
            batch.weigh_echo(&config.algorithm.echo);
        }
        let computed = clock.time("adv", || advantages.compute(&mut batch, reported, at.step, &mut metrics));
        computed.map_err(|error| nothing_updated(error, at.step))?;
        let checked = nonfinite::check_columns(&mut batch, at, &mut metrics);
        checked.map_err(|error| advantages.blamed(error))?;
        at.check_interrupt()?;
        samples::show_probe(&batch, &sampling.tokenizer, at)?;
        if learning.has_critic() {
            clock.time("update_critic", || learning.update_critic(&batch, &advantages.comparable(&batch), at, &mut metrics))?;
        }
        let trains_actor = at.step >= learning.first_actor_step();
        if trains_actor {
            clock.time("update_actor", || learning.update_actor(&batch, at, &mut metrics))?;
            learning.sync_reference(at.step);
            learning.sync_teacher(at.step);
        }
        let used =
            UsedSamples { batch: &batch, updates: learning.numbers_of_updates(&batch, at.step), discarded: &sampling.discarded };
        at.ranks.first(|| samples::dump(&used, config.trainer.rollout_data_dir.as_ref(), at.step))?;
        samples::show_completions(&used, &sampling.tokenizer, &config.trainer, at)?;

        metrics::of_batch(&batch, &config.data, &mut metrics);
        agent_metrics::of_batch(&batch, &mut metrics);
        self.tool_watch.follow(at.step, &batch);
        metrics::variance_proxy(&batch, &config.actor_rollout_ref.actor, &mut metrics);
        timing::of_step(&clock, &batch, self.gpu.as_ref(), &at.ranks, &mut metrics);
        self.tokens += batch.total_tokens() as u64;
        trl_metrics::of_batch(&batch, at.step * sampling.trajectories_per_step() as u64, self.tokens, &mut metrics);
        Ok(metrics)
    }

    fn validates(&self) -> bool {
        self.config.data.val_files.is_some()
    }

    fn validate(&mut self, at: &mut Context) -> Result<Metrics> {
        self.sampling.validate(self.learning.policy(), at)
    }

    fn complete(&mut self, row: &mut Metrics) {
        self.sampling.report_rewards(row);
    }

    fn renamed(&self, row: Metrics) -> Metrics {
        trl_metrics::named(row, self.config.trainer.metric_names)
    }

    fn headline(&self, row: &Metrics) -> (&'static str, f64) {
        ("reward", row.get("critic/score/mean").unwrap_or(f64::NAN))
    }

    fn sampler(&mut self) -> &mut Sampler {
        &mut self.sampling.sampler
    }

    fn validation_crc(&self) -> Option<&str> {
        Some(&self.sampling.val_crc)
    }

    fn state(&self) -> TrainerState {
        TrainerState {
            kl_controller: self.advantages.kl_controller().cloned(),
            reported: self.reported.clone(),
            tokens: self.tokens,
            adaptive_entropy: self.learning.adaptive_entropy().cloned(),
            role_baselines: self.advantages.role_baselines.clone(),
            prompt_values: self.sampling.prompt_values.clone(),
        }
    }

    fn set_state(&mut self, state: TrainerState) {
        let TrainerState { kl_controller, reported, tokens, adaptive_entropy, role_baselines, prompt_values } = state;
        self.learning.set_adaptive_entropy(adaptive_entropy);
        self.advantages.role_baselines = role_baselines;
        self.sampling.prompt_values = prompt_values.filter(|_| self.advantages.needs(Need::PromptValue));
        self.tokens = tokens;
        self.reported = reported;
        self.advantages.set_kl_controller(kl_controller);
    }

    fn save(&self, folder: &Path) -> Result<()> {
        self.learning.save(folder, self.sampling.tokenizer.files())
    }

    fn saved(&mut self, step: u64) {
        self.sampling.saved(self.learning.policy(), step);
    }

    fn state_part(&self, part: &StatePart) -> Vec<f32> {
        self.learning.state_part(part)
    }

    fn fingerprint(&self) -> String {
        self.learning.fingerprint()
    }

    fn data_crc(&self) -> String {
        self.sampling.data_crc()
    }

    fn load(&mut self, folder: &Path) -> Result<()> {
        self.learning.load(folder)
    }

    fn adapt(&self, state: TrainerState, data: &SamplerState, changes: &Changes) -> Result<TrainerState> {
        state.adapted(&self.advantages, &self.learning, data, changes)
    }

    fn announce(&self, at: &Context) {
        setup::announce(&self.config, &self.sampling, &self.learning, at);
    }
}
