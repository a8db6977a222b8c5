//! Phase `adv`: from scores to advantages, in plain Rust on ragged columns, in the order of the functions here.

use crate::trainer::batch::{Batch, turn_rewards};
use std::sync::Arc;

use anyhow::{Error, Result};

use crate::trainer::algorithms::{RunEstimator, TokenRewards};
use crate::trainer::batch::columns::Column;
use crate::trainer::sampling::ReportedNames;
use burnish_algorithm::advantage::{Component, Need, RoleBaselines};
use burnish_algorithm::kl::{KlController, KlPenalty, apply_kl_in_reward};
use burnish_algorithm::pf_ppo::{Reweighting, resample};
use burnish_algorithm::reward_shaping::{LengthPenalty, NormalizeAdvantages, RewardShaping, subtract_teacher_kl, whiten_rewards};
use burnish_algorithm::rollout_correction::{RolloutCorrection, off_policy_metrics};
use burnish_checkpoint::{Changes, KL_COEF};
use burnish_config::PpoConfig;
use burnish_config::schema::TurnRewards;
use burnish_distributed::Ranks;
use burnish_tracking::Metrics;
use burnish_util::rng::Stream;

/// Settings and state of the phase that turns scores into advantages.
pub struct Advantages {
    pub config: Arc<PpoConfig>,
    pub ranks: Ranks,
    /// `None` if advantages have no reader; there are then neither rewards nor returns.
    pub estimator: Option<Arc<RunEstimator>>,
    /// Shaping of the scores of a batch, before anything else.
    pub batch_shaping: RewardShaping,
    /// Penalty for the length of responses, before `batch_shaping`.
    pub length_penalty: Option<LengthPenalty>,
    /// Moving means of the scores of roles, for an estimator that needs them.
    pub role_baselines: RoleBaselines,
    pub turn_rewards: TurnRewards,
    /// KL estimator and coefficient of the KL term in the rewards.
    pub kl_in_reward: Option<(KlPenalty, KlController)>,
    /// Correction of the difference between generation and training; `None` without one.
    pub correction: Option<RolloutCorrection>,
    /// True if the policy that generated counts as the old policy (`algorithm.rollout_correction.bypass_mode`).
    pub bypass: bool,
    pub normalize: Option<NormalizeAdvantages>,
    /// Resampling of the batch, with its exponent.
    pub pf_ppo: Option<(&'static Reweighting, f64)>,
}

impl Advantages {
    /// Adds the file and name of a Python estimator to an error about its result.
    pub fn blamed(&self, error: Error) -> Error {
        match &self.estimator {
            Some(estimator) => estimator.blamed(error),
            None => error,
        }
    }

    /// Writes rewards, weights of the rollout correction, advantages and returns into the batch; PF-PPO then resamples the batch.
    /// Without an estimator, writes only the weights.
    ///
    /// # Errors
    /// If a setting names a value that no reward reports, or an estimator in Python fails. No weight has changed then.
    pub fn compute(&mut self, batch: &mut Batch, reported: &ReportedNames, step: u64, metrics: &mut Metrics) -> Result<()> {
        match self.estimator.clone() {
            None => self.correct(batch, metrics),
            Some(estimator) => {
                let scores = self.shaped_scores(batch);
                self.rewards(batch, &scores, metrics);
                self.correct(batch, metrics);
                self.estimate(&estimator, batch, &scores, reported)?;
                self.teacher_term(batch, metrics);
                self.normalize(batch, metrics);
            }
        }
        if let Some((method, power)) = self.pf_ppo {
            let weights = method.weights(&batch.trajectory_scores(), power);
            let mut stream = Stream::new(self.config.trainer.seed, "pf_ppo", &[step]);
            *batch = batch.select(&resample(&weights, batch.len(), &mut || stream.uniform()));
        }
        Ok(())
    }

    /// Returns true if the estimator needs this.
    pub fn needs(&self, need: Need) -> bool {
        self.estimator.as_ref().is_some_and(|estimator| estimator.needs(need))
    }

    /// Returns true for each trajectory that the estimator can compare with others; the rest have neither advantage nor return.
    pub fn comparable(&self, batch: &Batch) -> Vec<bool> {
        self.estimator.as_ref().map_or_else(|| vec![false; batch.len()], |estimator| estimator.comparable(batch))
    }

    /// Normalises the advantages of the comparable trajectories, if set.
    fn normalize(&self, batch: &mut Batch, metrics: &mut Metrics) {
        let comparable = self.comparable(batch);
        let alone = comparable.iter().zip(batch.scored()).filter(|(comparable, scored)| *scored && !**comparable).count();
        metrics.set("reward/left_alone_ratio", alone as f64 / batch.len() as f64);
        if let Some(normalize) = self.normalize {
            let mut advantages = batch[Column::Advantages].to_vec();
            normalize.apply(batch.offsets(), &batch[Column::Mask], &comparable, &mut advantages);
            batch.set(Column::Advantages, advantages);
        }
    }

    /// Returns token-level scores, normalised and clipped over the batch if set, with the rewards of turns placed at tokens. A
    /// score belongs to the last trained token, even if a tool wrote the last token.
    fn shaped_scores(&self, batch: &Batch) -> Vec<f32> {
        let mut scores = batch.trajectory_scores();
        if let Some(penalty) = &self.length_penalty {
            penalty.apply(&mut scores, &batch.group, &batch.sizes());
        }
        self.batch_shaping.apply(&mut scores, &[], &[]);
        let mut scores = batch.on_trained_tokens(&batch.at_last_tokens(&scores));
        turn_rewards::place(self.turn_rewards, batch, &mut scores);
        scores
    }

    /// Writes the rewards: scores, less the KL term.
    fn rewards(&mut self, batch: &mut Batch, scores: &[f32], metrics: &mut Metrics) {
        let old = self.old_log_prob(batch);
        let mut rewards = match (&mut self.kl_in_reward, batch.get(Column::RefLogProb)) {
            (Some((penalty, controller)), Some(reference)) => {
                let kl = penalty.values(old, reference, batch.get(Column::FullKl));
                let kl = apply_kl_in_reward(batch.offsets(), &batch[Column::Mask], scores, &kl, controller);
                metrics.set("actor/reward_kl_penalty", kl.current_kl);
                metrics.set("actor/reward_kl_penalty_coeff", kl.coef);
                let differences =
                    batch.totals(&kl.rewards).into_iter().zip(batch.totals(scores)).map(|(reward, score)| reward - score);
                let scored: Vec<f64> = differences.zip(batch.scored()).filter(|(_, scored)| *scored).map(|(d, _)| d).collect();
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

    /// Returns the log-probs under the policy before the update. Without its own pass that is the policy that generated; in bypass
    /// mode, the distribution that was sampled from.
    fn old_log_prob<'a>(&self, batch: &'a Batch) -> &'a [f32] {
        let generated = if self.bypass { Column::RolloutLogProb } else { Column::SampledLogProb };
        batch.get(Column::OldLogProb).filter(|_| !self.bypass).unwrap_or(&batch[generated])
    }

    /// Subtracts the distance from the teacher, if set.
    fn teacher_term(&self, batch: &mut Batch, metrics: &mut Metrics) {
        let (Some(coef), Some(teacher)) = (self.config.distillation.in_advantages(), batch.get(Column::TeacherLogProb)) else {
            return;
        };
        let (mut advantages, mut mask) = (batch[Column::Advantages].to_vec(), batch[Column::Mask].to_vec());
        if let Some(chosen) = batch.get(Column::TeacherMask) {
            mask.iter_mut().zip(chosen).for_each(|(mask, chosen)| *mask *= chosen);
        }
        let distance = subtract_teacher_kl(&mask, self.old_log_prob(batch), teacher, coef, &mut advantages);
        batch.set(Column::Advantages, advantages);
        metrics.set("distillation/opd_reverse_kl", distance);
    }

    /// Computes and reports importance weights and rejections for the difference between generation and training. In bypass mode
    /// the loss computes them.
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

    fn estimate(&mut self, estimator: &RunEstimator, batch: &mut Batch, scores: &[f32], reported: &ReportedNames) -> Result<()> {
        let components = if estimator.needs(Need::Components) { self.components(batch, reported)? } else { Vec::new() };
        let settled = |column: &[f32]| {
            let mut column = batch.on_trained_tokens(column);
            turn_rewards::settle(self.turn_rewards, batch, &mut column);
            column
        };
        let (rewards, scores) = (settled(&batch[Column::Rewards]), settled(scores));
        let baselines = estimator.needs(Need::RoleBaseline).then(|| {
            let totals = batch.totals(&rewards).into_iter().zip(batch.scored());
            let totals: Vec<Option<f64>> = totals.map(|(total, scored)| scored.then_some(total)).collect();
            let roles: Vec<&str> = (0..batch.len()).map(|i| batch.role(i)).collect();
            self.role_baselines.follow(self.config.algorithm.rae_decay, &roles, &totals)
        });
        let tokens = TokenRewards { rewards: &rewards, scores: &scores };
        let output = estimator.estimate(batch, tokens, &components, baselines.as_deref(), &self.ranks)?;
        batch.set(Column::Advantages, output.advantages);
        batch.set(Column::Returns, output.returns);
        Ok(())
    }

    /// Returns the rewards that `algorithm.gdpo_reward_keys` names with their weights, otherwise the rewards of the reward
    /// functions.
    fn components(&self, batch: &Batch, reported: &ReportedNames) -> Result<Vec<Component>> {
        let algorithm = &self.config.algorithm;
        let Some(keys) = algorithm.gdpo_reward_keys.clone().filter(|keys| !keys.is_empty()) else {
            return Ok(batch.components());
        };
        let weights = algorithm.gdpo_reward_weights.clone().unwrap_or_else(|| vec![1.0; keys.len()]);
        let component = |(name, weight): (String, f64)| {
            let values = reported.number(batch, &name, "algorithm.gdpo_reward_keys")?;
            Ok(Component { name, weight, values })
        };
        keys.into_iter().zip(weights).map(component).collect()
    }

    /// Returns the controller of the KL term in the rewards, if the run has one.
    pub fn kl_controller(&self) -> Option<&KlController> {
        self.kl_in_reward.as_ref().map(|(_, controller)| controller)
    }

    /// Replaces the controller, if the run has one.
    pub(crate) fn set_kl_controller(&mut self, controller: Option<KlController>) {
        if let (Some((_, own)), Some(controller)) = (&mut self.kl_in_reward, controller) {
            *own = controller;
        }
    }

    /// Returns the controller of a resumed run: the checkpoint's, except for settings that have changed since.
    pub(crate) fn resumed_kl_controller(&self, saved: Option<KlController>, changes: &Changes) -> Option<KlController> {
        match (self.kl_controller(), &saved) {
            (Some(_), None) => tracing::warn!("the checkpoint has no KL controller; it starts at algorithm.kl_ctrl.kl_coef"),
            (None, Some(_)) => tracing::warn!("the checkpoint's KL controller is not used: algorithm.use_kl_in_reward=false"),
            _ => {}
        }
        let (Some(own), Some(saved)) = (self.kl_controller(), &saved) else { return saved };
        let now = if changes.has(KL_COEF) { own.clone() } else { own.clone().resumed_from(saved) };
        if now.coef() != saved.coef() {
            tracing::warn!(
                "the coefficient of the KL in the reward is {}; in the checkpoint it was {}",
                now.coef(),
                saved.coef()
            );
        }
        Some(now)
    }
}
