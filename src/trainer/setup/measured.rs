//! The times of reinforcement learning, for `--dry-run`. Scores are stand-ins: neither reward functions nor tools are called.

use std::sync::Arc;

use anyhow::Result;
use burn::tensor::Device;

use super::inputs::TrainerInputs;
use super::start::trainer;
use crate::job::RunSettings;
use crate::job::measure::{Measurable, StepPlan, StepSize, StepWork, TimedStep, Times, measure};
use crate::trainer::Trainer;
use burnish_algorithm::advantage::{Need, PromptValues};
use burnish_config::{PpoConfig, UpdatePlan};
use burnish_data::Sampler;
use burnish_distributed::Ranks;
use burnish_reward::{Reward, Rewards, Runs, Score, ScoreInput};
use burnish_tracking::Metrics;
use burnish_util::crc::IEEE;

/// Measures steps of a run. Collective.
///
/// # Errors
/// If the models cannot be loaded. The inner errors are those of a step.
pub(super) fn measured(
    mut config: PpoConfig,
    mut inputs: TrainerInputs,
    settings: RunSettings,
    device: &Device,
    ranks: &Ranks,
) -> Result<Result<Times>> {
    let plan = plan(&config, &inputs);
    config.trainer.rollout_data_dir = None;
    config.trainer.validation_data_dir = None;
    config.trainer.log_completions = 0;
    config.trainer.log_val_generations = 0;
    config.algorithm.filter_groups.enable = false;
    let stand_ins = inputs.rewards.names().iter().map(|name| Reward::new(name, Runs::Rule(stand_in))).collect();
    inputs.rewards = Rewards::from_functions(stand_ins);
    inputs.post_processing = None;
    inputs.agents = None;
    config.algorithm.a2po.filter_all_incorrect = false;
    let values = values_prompts(&inputs).then(|| {
        let mut values = PromptValues::default();
        inputs.train.iter().for_each(|prompt| values.add(prompt.index, &[], 1.0));
        values
    });
    let mut trainer = ranks.agree(trainer(Arc::new(config), inputs, device, ranks))?;
    trainer.sampling.prompt_values = values;
    trainer.learning.actor.lr = 0.0;
    trainer.learning.critic.iter_mut().for_each(|critic| critic.lr = 0.0);
    Ok(measure(trainer, plan, settings, device, ranks))
}

fn plan(config: &PpoConfig, inputs: &TrainerInputs) -> StepPlan {
    let (rows, samples) = (inputs.plan.prompts_per_step, inputs.plan.samples_per_prompt);
    let tokens: usize = inputs.train.iter().map(|prompt| prompt.ids.len()).sum();
    let left_out = [
        (true, "reward functions (`trainer reward check` has their seconds)"),
        (inputs.post_processing.is_some(), "the function of algorithm.post_processing"),
        (inputs.agents.is_some(), "tools, and the further turns of conversations on the left"),
        (values_prompts(inputs), "the responses to all prompts before the first step, which estimate their values"),
        (config.algorithm.filter_groups.enable, "further batches of dynamic sampling"),
    ];
    StepPlan {
        size: StepSize { rows, tokens: config.data.max_response_length },
        rows_name: "prompts",
        drawn_rows: inputs.sampler.batch_size().max(rows),
        samples,
        given_per_row: (tokens * samples) as f64 / inputs.train.len() as f64,
        validated: if config.validates() { inputs.val.len() } else { 0 },
        step: (config.trainer.critic_warmup as u64).max(1),
        left_out: left_out.into_iter().filter(|(is_left_out, _)| *is_left_out).map(|(_, what)| what).collect(),
    }
}

/// Returns true if the run estimates the values of its prompts.
fn values_prompts(inputs: &TrainerInputs) -> bool {
    inputs.estimator.as_ref().is_some_and(|estimator| estimator.needs(Need::PromptValue))
}

/// Returns a score between 0 and 1 that differs between texts.
fn stand_in(input: &ScoreInput) -> Result<Score> {
    let score = f64::from(IEEE.checksum(input.raw.as_bytes())) / f64::from(u32::MAX);
    Ok(Score::graded(score, None))
}

impl Measurable for Trainer {
    fn resize(&mut self, size: StepSize) -> Result<()> {
        let (sampling, data) = (&mut self.sampling, &self.config.data);
        sampling.sampler = Sampler::new(sampling.train.len(), size.rows, data.shuffle, self.config.trainer.seed, true)?;
        sampling.plan.prompts_per_step = size.rows;
        sampling.plan.trajectories_per_step = size.rows * sampling.plan.samples_per_prompt;
        sampling.sampling.max_tokens = size.tokens;
        sampling.sampling.min_tokens = sampling.sampling.min_tokens.min(size.tokens);
        Ok(())
    }

    fn shorten_validation(&mut self, rows: usize) -> usize {
        self.sampling.val.truncate(rows);
        self.sampling.val.len()
    }

    fn passes(&self, phase: &str, rows: usize, longest: f64) -> f64 {
        let trajectories = rows * self.learning.plan.samples_per_prompt;
        let together = self.config.actor_rollout_ref.rollout.max_num_seqs;
        let updates = |plan: &UpdatePlan| (trajectories.div_ceil(plan.mini_batch_trajectories) * plan.epochs) as f64;
        match phase {
            "update_actor" => updates(&self.learning.plan.actor),
            "update_critic" => self.learning.plan.critic.as_ref().map_or(1.0, updates),
            "gen" => longest * trajectories.div_ceil(together) as f64,
            "gen_max" => longest * rows.div_ceil(together) as f64,
            _ => 1.0,
        }
    }

    fn timed(&self, size: StepSize, row: &Metrics) -> TimedStep {
        let of = |name: &str| row.get(name).unwrap_or(0.0);
        // The time of a reward model is real, that of stand-ins says nothing.
        let is_scored = self.sampling.reward_model.is_some();
        let is_shown = |phase: &str| phase != "step" && (phase != "reward" || is_scored);
        let phases = row.iter().filter_map(|(name, seconds)| Some((name.strip_prefix("timing_s/")?, seconds)));
        let mut phases: Vec<(String, f64)> =
            phases.filter(|(phase, _)| is_shown(phase)).map(|(phase, seconds)| (phase.to_owned(), seconds)).collect();
        let known: f64 = phases.iter().map(|(_, seconds)| seconds).sum();
        let reward = if is_scored { 0.0 } else { of("timing_s/reward") };
        phases.push(("other".to_owned(), (of("timing_s/step") - reward - known).max(0.0)));
        let responses = size.rows * self.sampling.plan.samples_per_prompt;
        let sampled = of("response_length/mean") * responses as f64;
        let cut = (of("response/truncated_ratio") * responses as f64).round() as usize;
        TimedStep {
            rows: size.rows,
            limit: size.tokens,
            phases,
            work: StepWork { given: of("perf/total_num_tokens") - sampled, sampled, generated: sampled },
            responses: (responses, responses.saturating_sub(cut)),
        }
    }
}
