//! Phase `prompt_values`: before the first step, the optimal value of every training prompt, for an estimator that needs it.

use std::sync::Arc;

use anyhow::{Result, ensure};

use super::sample::SampleRequest;
use super::side::SamplingSide;
use crate::job::Context;
use crate::trainer::batch::columns::Column;
use crate::trainer::batch::{Batch, turn_rewards};
use burnish_algorithm::advantage::PromptValues;
use burnish_algorithm::reward_shaping::RewardShaping;
use burnish_data::Prompt;
use burnish_model::CausalLm;
use burnish_tracking::Metrics;

const FILTER: &str = "algorithm.a2po.filter_all_incorrect";

impl SamplingSide {
    /// Samples and scores `algorithm.a2po.num_value_samples` responses of a model to each training prompt, and keeps the values.
    ///
    /// # Errors
    /// The errors of generation and scoring; if the filter leaves fewer prompts than a batch has.
    pub(crate) fn estimate_prompt_values(&mut self, model: &CausalLm, batch_shaping: &RewardShaping, at: &Context) -> Result<()> {
        let (settings, sampling, prompts) = (self.config.algorithm.a2po, self.sampling, self.train.clone());
        let n = settings.num_value_samples;
        let mut values = PromptValues::default();
        // As many responses at a time as a step has.
        for chunk in prompts.chunks((self.plan.trajectories_per_step / n).max(1)) {
            let request = SampleRequest { purpose: "prompt value", prompts: chunk.to_vec(), n, sampling, keys: &[] };
            let sampled = self.sample(model, request, at)?;
            at.check_interrupt()?;
            let batch = self.score(sampled, at)?;
            let mut scores = batch.trajectory_scores();
            let earned = batch.episodes.iter().map(|episode| turn_rewards::placed_total(self.turn_rewards, episode.as_deref()));
            scores.iter_mut().zip(earned).for_each(|(score, earned)| *score = score.map(|score| score + earned));
            batch_shaping.apply(&mut scores, &[], &[]);
            for (prompt, scores) in chunk.iter().zip(scores.chunks(n)) {
                let scores: Vec<f64> = scores.iter().flatten().copied().collect();
                values.add(prompt.index, &scores, settings.beta1);
            }
        }
        let (all, solved, mean) = values.summary();
        tracing::info!("{n} responses to each of {all} prompts: the mean value is {mean:.4}, and {solved} prompts were solved");
        if settings.filter_all_incorrect && solved < all {
            tracing::info!("the run draws only these {solved} prompts ({FILTER}); its number of steps stays");
        }
        self.prompt_values = Some(values);
        self.check_kept(solved)
    }

    /// Checks that an epoch of the kept prompts has a batch.
    fn check_kept(&self, solved: usize) -> Result<()> {
        let (settings, size) = (self.config.algorithm.a2po, self.sampler.batch_size());
        ensure!(
            !settings.filter_all_incorrect || solved >= size,
            "{FILTER}=true keeps {solved} of {} prompts, and a batch has {size}: no other prompt has a score above 0 among {} \
             responses; raise algorithm.a2po.num_value_samples, lower data.train_batch_size, or set it to false",
            self.train.len(),
            settings.num_value_samples
        );
        Ok(())
    }

    /// Returns the prompts of the next batch; without prompts that [`FILTER`] leaves out, once values are known.
    pub(super) fn next_prompts(&mut self) -> Result<Vec<Arc<Prompt>>> {
        let (train, filters) = (&self.train, self.config.algorithm.a2po.filter_all_incorrect);
        let values = self.prompt_values.as_ref().filter(|_| filters);
        let is_kept = |i: usize| values.is_none_or(|values| values.is_solved(train[i].index));
        let rows = self.sampler.next_batch_where(is_kept);
        ensure!(!rows.is_empty(), "an epoch has no batch of prompts that {FILTER}=true keeps; set it to false");
        Ok(rows.into_iter().map(|i| train[i].clone()).collect())
    }

    /// Writes the value of its prompt for each trajectory.
    ///
    /// # Errors
    /// If a prompt has no value, because the values are of other data.
    pub(crate) fn value_baselines(&self, batch: &mut Batch, metrics: &mut Metrics) -> Result<()> {
        let of = |prompt: &Arc<Prompt>| self.prompt_values.as_ref().and_then(|values| values.of(prompt.index));
        let values: Vec<Option<f64>> = batch.prompts.iter().map(of).collect();
        if let Some(unknown) = values.iter().position(Option::is_none) {
            anyhow::bail!(
                "the checkpoint has no value of the prompt in {}: the data has changed",
                batch.prompts[unknown].place()
            );
        }
        let of_trajectory = |&group: &usize| values[group].unwrap_or_default();
        let baselines: Vec<f64> = batch.group.iter().map(of_trajectory).collect();
        metrics.set("critic/v_star/mean", baselines.iter().sum::<f64>() / baselines.len().max(1) as f64);
        batch.set(Column::RewardBaselines, baselines.into_iter().map(|value| value as f32).collect());
        Ok(())
    }
}
