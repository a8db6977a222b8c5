//! Phase `update_actor`: for each epoch, mini-batch and micro-batch, forward and backward; one optimizer update per mini-batch.
//!
//! A token's weight in the loss, and all other facts about the mini-batch, come from counts of the whole mini-batch: gradients do
//! not depend on its division.

use anyhow::{Context as _, Result};

use super::distillation::TeacherLossInputs;
use super::mini_batch::{MiniBatch, lengths, micro_batches, mini_batches};
use super::passes;
use super::side::LearningSide;
use super::totals::Totals;
use crate::job::Context;
use crate::trainer::batch::Batch;
use crate::trainer::batch::columns::{BatchColumns, Column};
use crate::trainer::batch::nonfinite::{NonfiniteValue, nonfinite_sequence, on_nonfinite};
use crate::trainer::state::nothing_updated;
use burnish_algorithm::aggregate::{AllOf, grouped_token_weights};
use burnish_algorithm::echo::{self, EchoTerm};
use burnish_algorithm::entropy_bonus::EntropyBonus;
use burnish_algorithm::loss::{LossColumns, LossResult, MEASURED_ENTROPY};
use burnish_algorithm::policy_loss::{self, Metric};
use burnish_algorithm::{scatter, sequences};
use burnish_model::token_stats::TokenGrads;
use burnish_model::{CausalLm, ComparisonTarget, Gradients, RouterStats, Sequence, TokenStats};
use burnish_optim::{GradientSum, Update};
use burnish_reward::python::GlobalBatchInfo;
use burnish_tracking::Metrics;
use burnish_util::rng::Stream;

impl LearningSide {
    /// Updates the actor towards the advantages of the batch, once per mini-batch.
    ///
    /// # Errors
    /// If a loss or a gradient is not finite and `trainer.on_nonfinite=error`, or an update broke the weights.
    pub(crate) fn update_actor(&mut self, batch: &Batch, at: &Context, metrics: &mut Metrics) -> Result<()> {
        let lr = self.actor.lr_at((at.step - self.first_actor_step()) as usize);
        let mut totals = Totals::default();
        let before = at.probe.as_ref().map(|_| self.actor.snapshot());
        let read = read_tokens(batch);
        for (index, MiniBatch { epoch, place, trajectories, size, prompts }) in
            self.updates(batch, at.step).into_iter().enumerate()
        {
            let groups: Vec<usize> = trajectories.iter().map(|&i| batch.group[i]).collect();
            let all = AllOf { sequences: size, prompts, groups: &groups };
            let mut mini = ActorMiniBatch {
                sequences: trajectories
                    .iter()
                    .map(|&i| match &read {
                        Some(read) => Sequence { sampled: Some(&read[batch.tokens(i)]), ..batch.sequence(i) },
                        None => batch.sequence(i),
                    })
                    .collect(),
                judged: trajectories
                    .iter()
                    .map(|&i| match &read {
                        Some(read) => Sequence { sampled: Some(&read[batch.tokens(i)]), ..self.teacher_sequence(batch, i) },
                        None => self.teacher_sequence(batch, i),
                    })
                    .collect(),
                columns: self.weighted(batch.columns().select(&trajectories), all),
                trajectories: &trajectories,
                groups,
                place: [at.step, epoch as u64, place as u64],
                size,
            };
            let mut own = Totals::default();
            let accumulated = self.accumulate(&mut mini, &mut own);
            let (gradients, nonfinite) = match accumulated {
                Err(error) if index == 0 && !self.has_critic() => return Err(nothing_updated(error, at.step)),
                accumulated => accumulated.with_context(|| format!("step {}, update {}", at.step, index + 1))?,
            };
            if let Some(probe) = &at.probe {
                self.look(probe, index + 1, &mut mini, &gradients)?;
            }
            if let Some((entropy, settings)) = &mut self.adaptive_entropy {
                entropy.update(own.sum_of_update(MEASURED_ENTROPY), settings);
            }
            totals.merge(vec![(own, None)]);
            let weights = self.actor.sample();
            let update = match &nonfinite {
                None => self.actor.update(gradients, lr)?,
                Some(_) => Update::skipped(),
            };
            weights.iter().for_each(|weights| totals.add_change("actor", &weights.changes(&self.actor)));
            if let Some(nonfinite) = nonfinite.or(NonfiniteValue::of_gradient("actor", &update)) {
                on_nonfinite(&nonfinite, batch, &trajectories, at)?;
            }
            totals.add_update("actor", &update);
        }
        if let (Some(probe), Some(before)) = (&at.probe, before) {
            probe.look(|step| step.layers = before.changes(&self.actor));
        }
        let before = metrics.get("actor/entropy");
        totals.report(self.plan.actor.updates_per_step, metrics);
        // If a pass before the update measured the entropy, that value is reported, as in verl.
        metrics.extend(before.map(|entropy| ("actor/entropy", entropy)));
        if let Some((_, coef)) = &self.objective.kl_loss {
            metrics.set("actor/kl_coef", *coef);
        }
        if let Some((entropy, _)) = &self.adaptive_entropy {
            metrics.set("actor/entropy_coef", entropy.coef());
        }
        metrics.set("actor/lr", lr);
        self.wait()
    }

    /// Returns the updates of the actor in a step.
    fn updates(&self, batch: &Batch, step: u64) -> Vec<MiniBatch> {
        let actor = &self.config.actor_rollout_ref.actor;
        let seed = actor.data_loader_seed.unwrap_or(self.config.trainer.seed);
        let shuffle = actor.shuffle.then_some(("mini-batches", seed));
        mini_batches(&self.plan.actor, batch, &batch[Column::Mask], shuffle, step)
    }

    /// Returns the numbers, from 1, of the actor's updates in a step that read each trajectory; none before the actor is trained.
    pub(crate) fn numbers_of_updates(&self, batch: &Batch, step: u64) -> Vec<Vec<usize>> {
        let mut numbers = vec![Vec::new(); batch.len()];
        if step >= self.first_actor_step() {
            for (index, update) in self.updates(batch, step).iter().enumerate() {
                update.trajectories.iter().for_each(|&i| numbers[i].push(index + 1));
            }
        }
        numbers
    }

    /// Returns the columns of a mini-batch with the weights of its tokens.
    fn weighted(&self, mut columns: BatchColumns, all: AllOf) -> BatchColumns {
        let scale = self.config.actor_rollout_ref.actor.loss_scale_factor;
        let width = self.config.data.max_response_length;
        let weights = |mode| grouped_token_weights(mode, columns.offsets(), &columns[Column::Mask], all, scale, width);
        let of_loss = weights(self.objective.policy_loss.aggregation(self.aggregation));
        let of_penalties = weights(self.aggregation);
        let skipped = self.config.distillation.skipped_tokens();
        let chosen = columns.get(Column::TeacherMask);
        let judged = (skipped > 0 || chosen.is_some()).then(|| {
            let mut mask = without_first(columns.offsets(), &columns[Column::Mask], skipped);
            if let Some(chosen) = chosen {
                mask.iter_mut().zip(chosen).for_each(|(mask, chosen)| *mask *= chosen);
            }
            let weights = grouped_token_weights(self.aggregation, columns.offsets(), &mask, all, scale, width);
            (mask, weights)
        });
        let echo = columns.get(Column::EchoWeights).map(|weights| {
            let count = weights.iter().filter(|weight| **weight != 0.0).count();
            weights.iter().map(|weight| weight / count.max(1) as f32).collect()
        });
        if let Some(echo) = echo {
            columns.set(Column::EchoWeights, echo);
        }
        columns.set(Column::LossWeights, of_loss);
        columns.set(Column::PenaltyWeights, of_penalties);
        if let Some((mask, weights)) = judged {
            columns.set(Column::TeacherMask, mask);
            columns.set(Column::TeacherWeights, weights);
        }
        columns
    }

    /// Returns the gradients of one mini-batch, and the first value on the way that is not finite. Each rank computes its slices.
    ///
    /// # Errors
    /// If the user's loss fails, on any rank.
    fn accumulate(&self, mini: &mut ActorMiniBatch, totals: &mut Totals) -> Result<(GradientSum, Option<NonfiniteValue>)> {
        let ranks = &self.actor.ranks;
        let slices = ranks.slices().cut(&lengths(&mini.sequences), &mini.groups);
        let cut = |slice: &[usize]| micro_batches(&self.plan.actor, &mini.sequences, slice);
        let in_one_piece = matches!(&slices[..], [slice] if cut(slice).len() == 1);
        let models = self.models();
        let mut is_prepared = !self.objective.needs_mini_batch();
        // A mini-batch that is not divided is prepared on the way, without a separate pass.
        if !is_prepared && !in_one_piece {
            self.prepare(mini, &self.current_stats(mini), totals);
            is_prepared = true;
        }
        let mut failure = None;
        let (gradients, found) = GradientSum::over(ranks, &slices, |slice, gradients| {
            let mut totals = Totals::default();
            let seen = &mut |_: &BatchColumns, _: &TokenStats| ();
            match self.accumulate_slice(&models, (mini, slice), is_prepared, gradients, &mut totals, seen) {
                Ok(nonfinite) => (totals, nonfinite),
                Err(error) => {
                    failure.get_or_insert(error);
                    (totals, None)
                }
            }
        });
        if self.custom_loss.is_some() {
            ranks.agree(failure.map_or(Ok(()), Err))?;
        }
        Ok((gradients, totals.merge(found)))
    }

    /// Returns the actor, and the reference if the loss compares the two, for the passes of a mini-batch.
    pub(super) fn models(&self) -> (CausalLm, Option<CausalLm>) {
        let full_kl = self.objective.kl_loss.as_ref().is_some_and(|(penalty, _)| penalty.is_full());
        (self.actor.model.for_passes(), self.reference.as_ref().filter(|_| full_kl).map(CausalLm::inference))
    }

    /// Adds the gradients of a slice of a mini-batch, micro-batch by micro-batch. Returns the first value on the way that is not
    /// finite. `seen` gets the columns and statistics of each micro-batch.
    ///
    /// # Errors
    /// If the user's loss fails.
    pub(super) fn accumulate_slice(
        &self,
        (model, reference): &(CausalLm, Option<CausalLm>),
        (mini, slice): (&mut ActorMiniBatch, &[usize]),
        mut is_prepared: bool,
        gradients: &mut Gradients,
        totals: &mut Totals,
        seen: &mut dyn FnMut(&BatchColumns, &TokenStats),
    ) -> Result<Option<NonfiniteValue>> {
        let (mut nonfinite, mut failure) = (None, None);
        let counts = self.custom_loss.as_ref().map(|_| self.counts(mini));
        for micro in &micro_batches(&self.plan.actor, &mini.sequences, slice) {
            let sequences = mini.sequences_of(micro);
            let judged: Vec<Sequence> = micro.iter().map(|&j| mini.judged[j]).collect();
            let distillation = self.distillation.as_ref();
            let tokens = distillation.and_then(|d| d.top_k(&self.actor.model, &sequences, &judged, self.temperature));
            let teacher = distillation.and_then(|d| d.comparison(tokens.as_ref(), d.teacher.get(&self.actor.model)));
            let comparison = teacher.or_else(|| reference.as_ref().map(ComparisonTarget::from));
            let model = model.with_routers(mini.share_of(&sequences));
            model.backward(&sequences, self.temperature, comparison, gradients, |stats| {
                if !is_prepared {
                    self.prepare(mini, &mini.in_order(stats, micro), totals);
                    is_prepared = true;
                }
                let columns = mini.columns.select(micro);
                let result =
                    self.loss(&columns, stats, (counts, self.entropy_bonus(&mini.columns)), totals).unwrap_or_else(|error| {
                        failure.get_or_insert(error);
                        let nothing = vec![0.0; stats.log_prob.len()];
                        LossResult { d_log_prob: nothing.clone(), d_entropy: nothing, ..LossResult::default() }
                    });
                seen(&columns, stats);
                if nonfinite.is_none() {
                    let found = nonfinite_of(stats, &result, columns.offsets());
                    nonfinite =
                        found.map(|(what, j)| NonfiniteValue { what, trajectory: j.map(|j| mini.trajectories[micro[j]]) });
                }
                totals.add(&result);
                let old_log_prob = self.old_log_prob(&columns);
                totals.add_ratios(columns.offsets(), &columns[Column::Mask], &stats.log_prob, old_log_prob);
                if mini.is_first() {
                    totals.add_first(&columns, &stats.log_prob, old_log_prob);
                }
                TokenGrads { log_prob: result.d_log_prob, entropy: result.d_entropy, full_kl: result.d_full_kl }
            });
            for (name, value) in model.router_stats().iter().flat_map(RouterStats::named) {
                totals.add_mean(&format!("actor/{name}"), value);
            }
            self.actor.ranks.beat();
            if let Some(error) = failure {
                return Err(error);
            }
        }
        Ok(nonfinite)
    }

    /// Returns the counts of a mini-batch for the user's loss.
    fn counts(&self, mini: &ActorMiniBatch) -> GlobalBatchInfo {
        let (actor, data) = (&self.config.actor_rollout_ref.actor, &self.config.data);
        GlobalBatchInfo {
            dp_size: 1,
            batch_num_tokens: mini.columns[Column::Mask].iter().map(|&mask| f64::from(mask)).sum(),
            global_batch_size: mini.size,
            loss_scale_factor: actor.loss_scale_factor.unwrap_or(data.max_response_length as f64),
        }
    }

    /// Returns the loss of a micro-batch with its derivatives. `stats`: of the current policy; `counts`, for the user's loss, and
    /// `bonus`: of the mini-batch.
    fn loss(
        &self,
        columns: &BatchColumns,
        stats: &TokenStats,
        (counts, bonus): (Option<GlobalBatchInfo>, Option<EntropyBonus>),
        totals: &mut Totals,
    ) -> Result<LossResult> {
        // If the teacher's loss is the only loss, advantages do not exist.
        let none = columns.get(Column::Advantages).is_none().then(|| vec![0.0; columns.tokens()]);
        let x = self.loss_columns(columns, stats, none.as_deref(), bonus);
        let mut result = self.objective.evaluate(&x);
        let is_trained = x.mask.iter().any(|mask| *mask != 0.0);
        if let (Some(custom), Some(counts), true) = (&self.custom_loss, counts, is_trained) {
            result = custom.add(result, &x, self.aggregation, counts)?;
        }
        let result = match self.distillation.as_ref().filter(|teacher| !teacher.in_advantages && !x.log_prob.is_empty()) {
            Some(distillation) => {
                let judged = TeacherLossInputs {
                    columns: self.judged(x, columns),
                    teacher_log_prob: columns.get(Column::TeacherLogProb),
                    rollout_log_prob: &columns[Column::RolloutLogProb],
                };
                distillation.combine(result, &judged, stats, totals)
            }
            None => result,
        };
        Ok(match columns.get(Column::EchoWeights) {
            Some(weights) => with_echo(result, &stats.log_prob, weights, totals),
            None => result,
        })
    }

    /// Returns the columns of the teacher's loss: tokens at the start of a response may be left out.
    fn judged<'a>(&self, x: LossColumns<'a>, columns: &'a BatchColumns) -> LossColumns<'a> {
        match (columns.get(Column::TeacherMask), columns.get(Column::TeacherWeights)) {
            (Some(mask), Some(weights)) => LossColumns { mask, penalty_weights: weights, ..x },
            _ => x,
        }
    }

    /// Returns what the loss of a micro-batch reads. `none`: advantages of a batch without that column. `bonus`: of the mini-batch.
    pub(super) fn loss_columns<'a>(
        &'a self,
        columns: &'a BatchColumns,
        stats: &'a TokenStats,
        none: Option<&'a [f32]>,
        bonus: Option<EntropyBonus>,
    ) -> LossColumns<'a> {
        LossColumns {
            offsets: columns.offsets(),
            mask: &columns[Column::Mask],
            log_prob: &stats.log_prob,
            entropy: &stats.entropy,
            old_log_prob: self.old_log_prob(columns),
            ref_log_prob: columns.get(Column::RefLogProb),
            advantages: none.unwrap_or_else(|| &columns[Column::Advantages]),
            weights: &columns[Column::LossWeights],
            penalty_weights: &columns[Column::PenaltyWeights],
            rollout_is_weights: columns.get(Column::RolloutIsWeights),
            full_kl: self.objective.kl_loss.as_ref().filter(|(penalty, _)| penalty.is_full()).map(|_| stats.full_kl.as_slice()),
            factor: columns.get(Column::LossFactor),
            entropy_mask: columns.get(Column::EntropyMask),
            behaviour_log_prob: columns.get(Column::SampledLogProb),
            entropy_bonus: bonus,
        }
    }

    /// Returns the entropy bonus of a mini-batch whose weight follows the entropy, if the run has one.
    fn entropy_bonus(&self, mini: &BatchColumns) -> Option<EntropyBonus> {
        let (entropy, settings) = self.adaptive_entropy.as_ref()?;
        let is_read =
            |t: &usize| mini[Column::Mask][*t] != 0.0 && mini.get(Column::EntropyMask).is_none_or(|mask| mask[*t] != 0.0);
        let tokens = (0..mini.tokens()).filter(is_read).count() as f64;
        Some(EntropyBonus { weight: entropy.weight(settings), tokens })
    }

    /// Returns `None` if a single update per step makes the old policy the current one, and every ratio exactly 1.
    fn old_log_prob<'a>(&self, columns: &'a BatchColumns) -> Option<&'a [f32]> {
        match self.is_to_rollout {
            true => columns.get(Column::RolloutLogProb),
            false => columns.get(Column::OldLogProb).filter(|_| !self.plan.on_policy()),
        }
    }

    /// Runs a pass without gradients, in the order of the mini-batch. Each rank passes over its slices.
    fn current_stats(&self, mini: &ActorMiniBatch) -> TokenStats {
        let model = self.actor.model.inference();
        let cut = |slice: &[usize]| micro_batches(&self.plan.actor, &mini.sequences, slice);
        let pass = |sequences: &[Sequence]| {
            let TokenStats { log_prob, entropy, .. } = model.token_stats(sequences, self.temperature, None);
            [log_prob, entropy]
        };
        let columns = passes::columns(&self.actor.ranks, &mini.sequences, &mini.groups, mini.columns.offsets(), cut, pass);
        let [log_prob, entropy] = columns;
        TokenStats { log_prob, entropy, ..TokenStats::default() }
    }

    /// Computes what the loss needs of the whole mini-batch. `stats`: of the current policy, in its order.
    fn prepare(&self, mini: &mut ActorMiniBatch, stats: &TokenStats, totals: &mut Totals) {
        let mut stream = Stream::new(self.config.trainer.seed, "policy loss", &mini.place);
        let columns = &mut mini.columns;
        let prepared = self.objective.prepare(
            &policy_loss::MiniBatch {
                offsets: columns.offsets(),
                mask: &columns[Column::Mask],
                log_prob: &stats.log_prob,
                entropy: &stats.entropy,
                old_log_prob: self.old_log_prob(columns).unwrap_or(&stats.log_prob),
                advantages: &columns[Column::Advantages],
                ref_log_prob: columns.get(Column::RefLogProb),
                groups: &mini.groups,
                options: &self.objective.options,
            },
            &mut || stream.uniform(),
        );
        for (name, value) in &prepared.metrics {
            totals.add_mean(name, *value);
        }
        for (column, values) in [(Column::LossFactor, prepared.factor), (Column::EntropyMask, prepared.entropy_mask)] {
            if let Some(values) = values {
                columns.set(column, values);
            }
        }
    }
}

/// Returns true for the tokens whose log-probabilities the loss reads, if they are more than those that the policy sampled.
fn read_tokens(batch: &Batch) -> Option<Vec<bool>> {
    let weights = batch.get(Column::EchoWeights)?;
    Some(batch.sampled().into_iter().zip(weights).map(|(sampled, weight)| sampled || *weight != 0.0).collect())
}

/// Adds the likelihood of what the environment wrote. `weights`: of this micro-batch, divided by the count of the mini-batch.
fn with_echo(mut result: LossResult, log_prob: &[f32], weights: &[f32], totals: &mut Totals) -> LossResult {
    let EchoTerm { loss, d_log_prob, nll: (sum, count) } = echo::term(log_prob, weights, 1);
    if !log_prob.is_empty() {
        result.d_log_prob.iter_mut().zip(&d_log_prob).for_each(|(all, own)| *all += own);
    }
    result.loss += loss;
    result.terms.push(("actor/echo_loss", loss));
    if count > 0.0 {
        totals.add_metrics(&[Metric { name: "actor/echo_nll".into(), sum, count }]);
    }
    result
}

/// Returns the mask without the first tokens of each response.
fn without_first(offsets: &[usize], mask: &[f32], count: usize) -> Vec<f32> {
    let mut mask = mask.to_vec();
    for tokens in sequences(offsets) {
        let end = tokens.end.min(tokens.start + count);
        mask[tokens.start..end].fill(0.0);
    }
    mask
}

/// Returns the first value of a micro-batch that is not finite, with its sequence, if it belongs to one.
fn nonfinite_of(stats: &TokenStats, result: &LossResult, offsets: &[usize]) -> Option<(String, Option<usize>)> {
    let columns =
        [("log_prob", &stats.log_prob), ("entropy", &stats.entropy), ("the derivative of the loss", &result.d_log_prob)];
    let of_column = columns.into_iter().find_map(|(name, values)| Some((name, Some(nonfinite_sequence(values, offsets)?))));
    let of_term = || result.terms.iter().find(|(_, value)| !value.is_finite()).map(|(name, _)| (*name, None));
    of_column.or_else(of_term).map(|(name, sequence)| (format!("actor: `{name}`"), sequence))
}

/// One mini-batch, its trajectories one after another.
pub(super) struct ActorMiniBatch<'a> {
    pub trajectories: &'a [usize],
    /// Prompt of each trajectory.
    groups: Vec<usize>,
    sequences: Vec<Sequence<'a>>,
    /// The same responses after the prompts that the teacher reads.
    judged: Vec<Sequence<'a>>,
    columns: BatchColumns,
    /// Key that is unique in the run: step, epoch and index in the epoch.
    place: [u64; 3],
    /// Its trajectories, including dropped ones.
    size: usize,
}

impl<'a> ActorMiniBatch<'a> {
    /// Returns true for the first update of a step, before which the policy is the one that generated.
    fn is_first(&self) -> bool {
        self.place[1..] == [0, 0]
    }

    /// Returns the part of the mini-batch's tokens that these sequences have.
    fn share_of(&self, sequences: &[Sequence]) -> f64 {
        let tokens = |sequences: &[Sequence]| sequences.iter().map(Sequence::len).sum::<usize>() as f64;
        tokens(sequences) / tokens(&self.sequences).max(1.0)
    }

    fn sequences_of(&self, micro: &[usize]) -> Vec<Sequence<'a>> {
        micro.iter().map(|&j| self.sequences[j]).collect()
    }

    /// Returns the statistics of the only micro-batch, whose sequences are sorted by prompt, in the order of the mini-batch.
    fn in_order(&self, stats: &TokenStats, micro: &[usize]) -> TokenStats {
        let order = |column: &[f32]| {
            let mut ordered = vec![0.0; self.columns.tokens()];
            scatter(&mut ordered, column, self.columns.offsets(), micro);
            ordered
        };
        TokenStats { log_prob: order(&stats.log_prob), entropy: order(&stats.entropy), ..TokenStats::default() }
    }
}
