//! Phase `update_actor`: for each epoch, mini-batch and micro-batch, forward and backward; one AdamW update per mini-batch.
//!
//! A token's weight in the loss comes from counts of the whole mini-batch, and so does whatever else a loss must know of it:
//! gradients do not depend on how it is cut.

use anyhow::Result;

use super::mini_batch::{MiniBatch, micro_cut, mini_batches};
use super::side::LearningSide;
use super::totals::Totals;
use crate::algorithm::aggregate::token_weights;
use crate::algorithm::loss::{LossColumns, PreparedMiniBatch};
use crate::algorithm::policy_loss;
use crate::algorithm::{gather, gather_offsets, scatter};
use crate::job::Context;
use crate::model::token_stats::TokenGrads;
use crate::model::{Gradients, Sequence, TokenStats};
use crate::optim::Update;
use crate::tracking::Metrics;
use crate::trainer::batch::Batch;
use crate::trainer::columns::Column;
use crate::trainer::nonfinite::{Fault, faulty_sequence, on_nonfinite};
use crate::util::rng::Stream;

impl LearningSide {
    /// Updates the actor towards the advantages of the batch, once for each mini-batch.
    ///
    /// # Errors
    /// A loss or a gradient that is not finite, with `trainer.on_nonfinite=error`.
    pub fn update_actor(&mut self, batch: &Batch, at: &Context, metrics: &mut Metrics) -> Result<()> {
        let lr = self.actor.lr_at((at.step - self.first_actor_step()) as usize);
        let mut totals = Totals::default();
        let actor = &self.config.actor_rollout_ref.actor;
        let seed = actor.data_loader_seed.unwrap_or(self.config.trainer.seed);
        let shuffle = actor.shuffle.then_some(("mini-batches", seed));
        for MiniBatch { epoch, place, trajectories, size } in
            mini_batches(&self.plan.actor, batch, &batch[Column::Mask], shuffle, at.step)
        {
            let mut gradients = Gradients::default();
            let columns = MiniBatchColumns::new(self, batch, &trajectories, size);
            let place = [at.step, epoch as u64, place as u64];
            let fault = self.accumulate(batch, &columns, &trajectories, &place, &mut gradients, &mut totals);
            let update = match &fault {
                None => self.actor.update(gradients, lr),
                Some(_) => Update::skipped(),
            };
            if let Some(fault) = fault.or(Fault::of_gradient("actor", &update)) {
                on_nonfinite(&fault, batch, &trajectories, at)?;
            }
            totals.add_update("actor", &update);
        }
        let before = metrics.get("actor/entropy");
        totals.report(self.plan.actor.updates_per_step, metrics);
        // Where a pass before the update measured the entropy, that of the policy that generated stands, as in verl.
        metrics.extend(before.map(|entropy| ("actor/entropy", entropy)));
        if let Some((_, coef)) = &self.objective.kl_loss {
            metrics.set("actor/kl_coef", *coef);
        }
        metrics.set("actor/lr", lr);
        self.wait()
    }

    /// Adds the gradients of one mini-batch, micro-batch by micro-batch. `place` tells it from all others of the run: step, epoch and number. The first
    /// number on the way that is not finite.
    fn accumulate(
        &self,
        batch: &Batch,
        columns: &MiniBatchColumns,
        trajectories: &[usize],
        place: &[u64],
        gradients: &mut Gradients,
        totals: &mut Totals,
    ) -> Option<Fault> {
        let micro_batches =
            micro_cut(&self.plan.actor).micro_batches(&trajectories.iter().map(|&i| batch.sequence(i)).collect::<Vec<_>>());
        let sequences = |micro: &[usize]| -> Vec<Sequence> { micro.iter().map(|&j| batch.sequence(trajectories[j])).collect() };
        // A mini-batch in one piece is prepared on the way, without a pass of its own.
        let mut prepared = None;
        if self.objective.needs_mini_batch() && micro_batches.len() > 1 {
            let (mut log_prob, mut entropy) = (columns.mask.clone(), columns.mask.clone());
            let model = self.actor.model.frozen();
            for micro in &micro_batches {
                let stats = model.token_stats(&sequences(micro), self.temperature, None);
                scatter(&mut log_prob, &stats.log_prob, &columns.offsets, micro);
                scatter(&mut entropy, &stats.entropy, &columns.offsets, micro);
            }
            prepared = Some(self.prepare(columns, &TokenStats { log_prob, entropy, ..TokenStats::default() }, place, totals));
        }
        let full_kl = self.objective.kl_loss.as_ref().is_some_and(|(penalty, _)| penalty.is_full());
        let reference = self.reference.as_ref().filter(|_| full_kl);
        let mut fault = None;
        for micro in &micro_batches {
            self.actor.model.backward(&sequences(micro), self.temperature, reference, gradients, |stats| {
                if self.objective.needs_mini_batch() && prepared.is_none() {
                    let order = TokenStats {
                        log_prob: columns.in_order(&stats.log_prob, micro),
                        entropy: columns.in_order(&stats.entropy, micro),
                        ..TokenStats::default()
                    };
                    prepared = Some(self.prepare(columns, &order, place, totals));
                }
                let own = |column: &Vec<f32>| gather(column, &columns.offsets, micro);
                let optional = |column: Option<&Vec<f32>>| column.map(own);
                let old_log_prob = optional(columns.old_log_prob.as_ref());
                let ref_log_prob = optional(columns.ref_log_prob.as_ref());
                let is_weights = optional(columns.rollout_is_weights.as_ref());
                let factor = optional(prepared.as_ref().and_then(|p| p.factor.as_ref()));
                let entropy_mask = optional(prepared.as_ref().and_then(|p| p.entropy_mask.as_ref()));
                let mask = own(&columns.mask);
                let offsets = gather_offsets(&columns.offsets, micro);
                let result = self.objective.evaluate(&LossColumns {
                    offsets: &offsets,
                    mask: &mask,
                    log_prob: &stats.log_prob,
                    entropy: &stats.entropy,
                    old_log_prob: old_log_prob.as_deref(),
                    ref_log_prob: ref_log_prob.as_deref(),
                    advantages: &own(&columns.advantages),
                    weights: &own(&columns.weights),
                    penalty_weights: &own(&columns.penalty_weights),
                    rollout_is_weights: is_weights.as_deref(),
                    full_kl: full_kl.then_some(stats.full_kl.as_slice()),
                    factor: factor.as_deref(),
                    entropy_mask: entropy_mask.as_deref(),
                });
                if fault.is_none() {
                    let column = |name: &str, values| {
                        faulty_sequence(values, &offsets).map(|j| (format!("`{name}`"), Some(trajectories[micro[j]])))
                    };
                    let loss =
                        || result.terms.iter().find(|(_, value)| !value.is_finite()).map(|(name, _)| (format!("`{name}`"), None));
                    let found = column("log_prob", &stats.log_prob).or_else(|| column("entropy", &stats.entropy));
                    let found = found.or_else(|| column("the derivative of the loss", &result.d_log_prob)).or_else(loss);
                    fault = found.map(|(what, trajectory)| Fault { what: format!("actor: {what}"), trajectory });
                }
                totals.add(&result);
                totals.add_ratios(&offsets, &mask, &stats.log_prob, old_log_prob.as_deref());
                TokenGrads { log_prob: result.d_log_prob, entropy: result.d_entropy, full_kl: result.d_full_kl }
            });
        }
        fault
    }

    /// Prepares what the loss must know of the whole mini-batch; `stats` are of the current policy, in the order of `columns`.
    fn prepare(&self, columns: &MiniBatchColumns, stats: &TokenStats, place: &[u64], totals: &mut Totals) -> PreparedMiniBatch {
        let mut stream = Stream::new(self.config.trainer.seed, "policy loss", place);
        let prepared = self.objective.prepare(
            &policy_loss::MiniBatch {
                offsets: &columns.offsets,
                mask: &columns.mask,
                log_prob: &stats.log_prob,
                entropy: &stats.entropy,
                old_log_prob: columns.old_log_prob.as_ref().unwrap_or(&stats.log_prob),
                advantages: &columns.advantages,
                options: &self.objective.options,
            },
            &mut || stream.uniform(),
        );
        for (name, value) in &prepared.metrics {
            totals.add_mean(name, *value);
        }
        prepared
    }
}

/// The columns of one mini-batch, its trajectories one after another.
struct MiniBatchColumns {
    offsets: Vec<usize>,
    mask: Vec<f32>,
    advantages: Vec<f32>,
    /// Weights of the policy loss, and of the entropy and KL terms beside it.
    weights: Vec<f32>,
    penalty_weights: Vec<f32>,
    /// None where a single update per step makes the old policy this one, and every ratio exactly 1.
    old_log_prob: Option<Vec<f32>>,
    ref_log_prob: Option<Vec<f32>>,
    rollout_is_weights: Option<Vec<f32>>,
}

impl MiniBatchColumns {
    /// `size`: trajectories of the mini-batch, with those left out.
    fn new(side: &LearningSide, batch: &Batch, trajectories: &[usize], size: usize) -> Self {
        let own = |column: &[f32]| gather(column, batch.offsets(), trajectories);
        let (offsets, mask) = (gather_offsets(batch.offsets(), trajectories), own(&batch[Column::Mask]));
        let scale = side.config.actor_rollout_ref.actor.loss_scale_factor;
        let width = side.config.data.max_response_length;
        let weights = |mode| token_weights(mode, &offsets, &mask, size, scale, width);
        let old = batch.get(if side.bypass { Column::RolloutLogProb } else { Column::OldLogProb });
        Self {
            weights: weights(side.objective.policy_loss.aggregation(side.aggregation)),
            penalty_weights: weights(side.aggregation),
            advantages: own(&batch[Column::Advantages]),
            old_log_prob: old.filter(|_| side.bypass || !side.plan.on_policy()).map(own),
            ref_log_prob: batch.get(Column::RefLogProb).map(own),
            rollout_is_weights: batch.get(Column::RolloutIsWeights).map(own),
            offsets,
            mask,
        }
    }

    /// A column of the only micro-batch, whose sequences are sorted by prompt, in the order of the mini-batch.
    fn in_order(&self, column: &[f32], micro: &[usize]) -> Vec<f32> {
        let mut ordered = self.mask.clone();
        scatter(&mut ordered, column, &self.offsets, micro);
        ordered
    }
}
