//! Phase `adv`: from scores to advantages. Plain Rust on ragged columns, in the order of the functions here.

use anyhow::Result;

use super::Trainer;
use super::batch::Batch;
use super::columns::Column;
use crate::algorithm::advantage::{AdvantageInput, Component, Need};
use crate::algorithm::kl::apply_kl_in_reward;
use crate::algorithm::pf_ppo::resample;
use crate::algorithm::reward_shaping::whiten_rewards;
use crate::algorithm::rollout_correction::off_policy_metrics;
use crate::tracking::Metrics;
use crate::util::rng::Stream;

impl Trainer {
    /// Rewards, rollout correction, advantages; with PF-PPO the batch is then resampled.
    pub(super) fn advantages(&mut self, batch: &mut Batch, metrics: &mut Metrics) -> Result<()> {
        let scores = self.shaped_scores(batch);
        self.rewards(batch, &scores, metrics);
        self.correct(batch, metrics);
        self.estimate(batch, &scores)?;
        let comparable = self.estimator.comparable(&batch.group, &batch.scored);
        let alone = comparable.iter().zip(&batch.scored).filter(|(comparable, scored)| **scored && !**comparable).count();
        metrics.set("reward/left_alone_ratio", alone as f64 / batch.len() as f64);
        if let Some(normalize) = self.normalize_advantages {
            let mut advantages = batch[Column::Advantages].to_vec();
            normalize.apply(batch.offsets(), &batch[Column::Mask], &comparable, &mut advantages);
            batch.set(Column::Advantages, advantages);
        }
        if let Some((method, power)) = self.pf_ppo {
            let weights = method.weights(&batch.trajectory_scores(), power);
            let mut stream = Stream::new(self.config.trainer.seed, "pf_ppo", &[self.step]);
            *batch = batch.select(&resample(&weights, batch.len(), &mut || stream.uniform()));
        }
        Ok(())
    }

    /// Token-level scores, normalised and clipped over the batch where that is asked for.
    fn shaped_scores(&self, batch: &Batch) -> Vec<f32> {
        let mut scores = batch.trajectory_scores();
        self.batch_shaping.apply(&mut scores, &[], &[]);
        batch.at_last_tokens(&scores)
    }

    /// Rewards: scores, less the KL term.
    fn rewards(&mut self, batch: &mut Batch, scores: &[f32], metrics: &mut Metrics) {
        // Without a pass of its own the policy before the update is the one that generated; in bypass mode what was sampled from is.
        let generated = if self.bypass { Column::RolloutLogProb } else { Column::SampledLogProb };
        let old = batch.get(Column::OldLogProb).filter(|_| !self.bypass).unwrap_or(&batch[generated]);
        let mut rewards = match (&mut self.kl_in_reward, batch.get(Column::RefLogProb)) {
            (Some((penalty, controller)), Some(reference)) => {
                let kl = penalty.values(old, reference, batch.get(Column::FullKl));
                let kl = apply_kl_in_reward(batch.offsets(), &batch[Column::Mask], scores, &kl, controller);
                metrics.set("actor/reward_kl_penalty", kl.current_kl);
                metrics.set("actor/reward_kl_penalty_coeff", kl.coef);
                let differences =
                    batch.totals(&kl.rewards).into_iter().zip(batch.totals(scores)).map(|(reward, score)| reward - score);
                let scored: Vec<f64> = differences.zip(&batch.scored).filter(|(_, scored)| **scored).map(|(d, _)| d).collect();
                metrics.set("objective/non_score_reward", scored.iter().sum::<f64>() / scored.len().max(1) as f64);
                kl.rewards
            }
            _ => scores.to_vec(),
        };
        if self.config.algorithm.whiten_rewards {
            rewards = whiten_rewards(&rewards, &batch.counted_mask());
        }
        batch.set(Column::Rewards, rewards);
    }

    /// Importance weights and rejections for the difference between generation and training, and its report. In bypass mode the
    /// loss works them out.
    fn correct(&self, batch: &mut Batch, metrics: &mut Metrics) {
        let Some(old) = batch.get(Column::OldLogProb).filter(|_| !self.bypass) else { return };
        let (offsets, mask, rollout) = (batch.offsets(), &batch[Column::Mask], &batch[Column::RolloutLogProb]);
        if let Some(correction) = &self.correction {
            let corrected = correction.apply(offsets, mask, old, rollout);
            metrics.extend(corrected.metrics);
            if let Some(weights) = corrected.weights {
                batch.set(Column::RolloutIsWeights, weights);
            }
            batch.set(Column::Mask, corrected.mask);
        } else if self.config.actor_rollout_ref.rollout.calculate_log_probs {
            metrics.extend(off_policy_metrics(offsets, mask, old, rollout));
        }
    }

    fn estimate(&mut self, batch: &mut Batch, scores: &[f32]) -> Result<()> {
        let components = if self.estimator.needs(Need::Components) { self.components(batch)? } else { Vec::new() };
        let output = self.estimator.estimate(
            &AdvantageInput {
                offsets: batch.offsets(),
                rewards: &batch.on_trained_tokens(&batch[Column::Rewards]),
                scores: &batch.on_trained_tokens(scores),
                mask: &batch[Column::Mask],
                group: &batch.group,
                values: batch.get(Column::Values),
                reward_baselines: batch.get(Column::RewardBaselines),
                old_log_prob: batch.get(Column::OldLogProb),
                sum_pi_squared: batch.get(Column::SumPiSquared),
                rollout_is_weights: batch.get(Column::RolloutIsWeights),
                components: &components,
                options: self.advantage_options.clone(),
            },
            &batch.scored,
        );
        batch.set(Column::Advantages, output.advantages);
        batch.set(Column::Returns, output.returns);
        Ok(())
    }

    /// The rewards that `algorithm.gdpo_reward_keys` names with their weights, or those of the reward functions.
    fn components(&mut self, batch: &Batch) -> Result<Vec<Component>> {
        let algorithm = &self.config.algorithm;
        let Some(keys) = algorithm.gdpo_reward_keys.clone().filter(|keys| !keys.is_empty()) else {
            return Ok(batch.components.clone());
        };
        let weights = algorithm.gdpo_reward_weights.clone().unwrap_or_else(|| vec![1.0; keys.len()]);
        let component = |(name, weight): (String, f64)| {
            let values = self.number(batch, &name, "algorithm.gdpo_reward_keys")?;
            Ok(Component { name, weight, values })
        };
        keys.into_iter().zip(weights).map(component).collect()
    }
}
