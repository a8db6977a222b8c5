//! Phase `update_actor`: for each epoch, mini-batch and micro-batch, forward and backward; one AdamW update per mini-batch.
//!
//! A token's weight in the loss comes from counts of the whole mini-batch, so gradients do not depend on how it is cut.

use super::Trainer;
use super::batch::{Batch, gather, gather_offsets};
use crate::algorithm::aggregate::token_weights;
use crate::algorithm::loss::{LossColumns, LossResult};
use crate::config::MicroBatch;
use crate::model::token_stats::TokenGrads;
use crate::model::{Cut, Gradients, Sequence};
use crate::tracking::Metrics;
use crate::util::rng::Stream;

impl Trainer {
    pub(super) fn update_actor(&mut self, batch: &Batch, metrics: &mut Metrics) {
        let lr = self.actor.lr_at(self.step as usize - 1);
        let mut totals = Totals::default();
        for epoch in 0..self.plan.epochs {
            for mini_batch in self.order(batch.len(), epoch).chunks(self.plan.mini_batch_trajectories) {
                let mut gradients = Gradients::default();
                self.accumulate(batch, mini_batch, &mut gradients, &mut totals);
                let update = self.actor.update(gradients, lr);
                totals.add_mean("actor/grad_norm", update.grad_norm);
                totals.add_mean("actor/skipped_updates", if update.applied { 0.0 } else { 1.0 });
            }
        }
        let before = metrics.get("actor/entropy");
        totals.report(self.plan.updates_per_step, metrics);
        // Where a pass before the update measured the entropy, that of the policy that generated stands, as in verl.
        metrics.extend(before.map(|entropy| ("actor/entropy", entropy)));
        if let Some((_, coef)) = &self.objective.kl_loss {
            metrics.set("actor/kl_coef", *coef);
        }
        metrics.set("actor/lr", lr);
    }

    /// Adds the gradients of one mini-batch, micro-batch by micro-batch.
    fn accumulate(&self, batch: &Batch, mini_batch: &[usize], gradients: &mut Gradients, totals: &mut Totals) {
        let actor = &self.config.actor_rollout_ref.actor;
        let mini_offsets = gather_offsets(&batch.offsets, mini_batch);
        let mini_mask = gather(&batch.mask, &batch.offsets, mini_batch);
        let width = self.config.data.max_response_length;
        let weights = token_weights(self.aggregation, &mini_offsets, &mini_mask, actor.loss_scale_factor, width);

        let lengths: Vec<usize> = mini_batch.iter().map(|&i| batch.sequence(i).len()).collect();
        let cut = match self.plan.micro_batch {
            MicroBatch::Trajectories(count) => Cut::Sequences(count),
            MicroBatch::Tokens(budget) => Cut::Tokens(budget),
        };
        for micro in cut.micro_batches(&lengths) {
            let trajectories: Vec<usize> = micro.iter().map(|&j| mini_batch[j]).collect();
            let column = |x: &[f32]| gather(x, &batch.offsets, &trajectories);
            // A single update per step is on-policy: no old policy, every ratio exactly 1.
            let old_log_prob = batch.old_log_prob.as_deref().filter(|_| !self.plan.on_policy()).map(column);
            let ref_log_prob = batch.ref_log_prob.as_deref().map(column);
            let (mask, advantages) = (column(&batch.mask), column(&batch.advantages));
            let sequences: Vec<Sequence> = trajectories.iter().map(|&i| batch.sequence(i)).collect();
            self.actor.model.backward(&sequences, self.temperature, gradients, |stats| {
                let result = self.objective.evaluate(&LossColumns {
                    offsets: &gather_offsets(&batch.offsets, &trajectories),
                    mask: &mask,
                    log_prob: &stats.log_prob,
                    entropy: &stats.entropy,
                    old_log_prob: old_log_prob.as_deref(),
                    ref_log_prob: ref_log_prob.as_deref(),
                    advantages: &advantages,
                    weights: &gather(&weights, &mini_offsets, &micro),
                    rollout_is_weights: None,
                    full_kl: None,
                    factor: None,
                    entropy_mask: None,
                });
                totals.add(&result);
                TokenGrads { log_prob: result.d_log_prob, entropy: result.d_entropy }
            });
        }
    }

    /// The order in which an epoch visits the trajectories (`actor.shuffle`).
    fn order(&self, trajectories: usize, epoch: usize) -> Vec<usize> {
        let actor = &self.config.actor_rollout_ref.actor;
        let mut order: Vec<usize> = (0..trajectories).collect();
        if actor.shuffle {
            let seed = actor.data_loader_seed.unwrap_or(self.config.trainer.seed);
            Stream::new(seed, "mini-batches", &[self.step, epoch as u64]).shuffle(&mut order);
        }
        order
    }
}

/// Metrics of all updates of a step.
#[derive(Default)]
struct Totals {
    /// Terms of the loss, weighted like it: they add up within a mini-batch and are averaged over updates.
    per_update: Vec<(&'static str, f64)>,
    /// Means over tokens: (name, sum, count).
    per_token: Vec<(&'static str, f64, f64)>,
}

impl Totals {
    fn add(&mut self, result: &LossResult) {
        for (name, value) in &result.terms {
            self.add_mean(name, *value);
        }
        for metric in &result.metrics {
            match self.per_token.iter_mut().find(|(name, ..)| *name == metric.name) {
                Some((_, sum, count)) => {
                    *sum += metric.sum;
                    *count += metric.count;
                }
                None => self.per_token.push((metric.name, metric.sum, metric.count)),
            }
        }
    }

    fn add_mean(&mut self, name: &'static str, value: f64) {
        match self.per_update.iter_mut().find(|(known, _)| *known == name) {
            Some((_, total)) => *total += value,
            None => self.per_update.push((name, value)),
        }
    }

    fn report(self, updates: usize, metrics: &mut Metrics) {
        metrics.extend(self.per_update.into_iter().map(|(name, total)| (name, total / updates as f64)));
        metrics.extend(self.per_token.into_iter().map(|(name, sum, count)| (name, sum / count.max(1.0) + 0.0))); // + 0.0: never −0
    }
}
