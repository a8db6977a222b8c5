//! Phases `old_log_prob`, `ref` and `teacher`: log-probs of the sampled tokens under the policy before the update, the reference,
//! and the teacher.

use super::mini_batch::{cut_slice, forward_cut};
use super::passes;
use super::side::LearningSide;
use crate::trainer::batch::Batch;
use crate::trainer::batch::columns::Column;
use crate::trainer::metrics::depth::probability_differences;
use burnish_algorithm::aggregate::{AllOf, grouped_token_weights, trained_sequences};
use burnish_model::{CausalLm, ComparisonTarget, Cut, Sequence, TokenStats};
use burnish_tracking::Metrics;

impl LearningSide {
    pub fn old_log_probs(&self, batch: &mut Batch, metrics: &mut Metrics) {
        let rollout = &self.config.actor_rollout_ref.rollout;
        let cut = forward_cut(
            rollout.log_prob_use_dynamic_bsz,
            rollout.log_prob_max_token_len_per_gpu,
            rollout.log_prob_micro_batch_size_per_gpu,
            batch,
        );
        let of_all = |stats: TokenStats| [stats.log_prob, stats.entropy, stats.sum_pi_squared];
        let [log_prob, entropy, sum_pi_squared] = self.token_stats(&self.actor.model, None, batch, cut, of_all);
        let actor = &self.config.actor_rollout_ref.actor;
        let width = self.config.data.max_response_length;
        // A mean over responses counts those with a trained token, as verl does for this metric.
        let count = trained_sequences(batch.offsets(), &batch[Column::Mask]);
        let all = AllOf { sequences: count, prompts: batch.prompts.len(), groups: &batch.group };
        let (mask, scale) = (&batch[Column::Mask], actor.loss_scale_factor);
        let weights = grouped_token_weights(self.aggregation, batch.offsets(), mask, all, scale, width);
        let entropy: f64 = entropy.iter().zip(&weights).map(|(h, w)| *h as f64 * *w as f64).sum();
        metrics.set("actor/entropy", entropy);
        let sampled = batch.sampled();
        let by_depth = probability_differences(batch.offsets(), |t| sampled[t], &batch[Column::RolloutLogProb], &log_prob);
        metrics.extend(by_depth.into_iter().map(|(name, sum, count)| (name, sum / count)));
        if rollout.calculate_log_probs {
            let of_sampled = |column: &[f32]| -> Vec<f32> {
                column.iter().zip(&sampled).filter(|(_, sampled)| **sampled).map(|(x, _)| *x).collect()
            };
            probability_difference(&of_sampled(&batch[Column::RolloutLogProb]), &of_sampled(&log_prob), metrics);
        }
        if self.reads_sum_pi_squared {
            batch.set(Column::SumPiSquared, sum_pi_squared);
        }
        batch.set(Column::OldLogProb, log_prob);
    }

    pub fn reference_log_probs(&self, batch: &mut Batch) {
        let Some(reference) = &self.reference else { return };
        let cut = self.reference_cut(batch);
        let [log_prob] = self.token_stats(reference, None, batch, cut, |stats| [stats.log_prob]);
        batch.set(Column::RefLogProb, log_prob);
        if self.full_kl_in_reward {
            let [full_kl] = self.token_stats(&self.actor.model, Some(reference), batch, cut, |stats| [stats.full_kl]);
            batch.set(Column::FullKl, full_kl);
        }
    }

    /// Computes the teacher's log-probs, if the distillation loss reads them.
    pub(crate) fn teacher_log_probs(&self, batch: &mut Batch) {
        let Some(distillation) = self.distillation.as_ref().filter(|distillation| distillation.passes_before()) else { return };
        let cut = self.reference_cut(batch);
        let teacher = distillation.teacher.get(&self.actor.model).inference();
        // A teacher's vocabulary with more padding than the policy's is cut to the policy's, as for whole distributions.
        let vocabulary = self.actor.model.config.vocab_size.min(teacher.config.vocab_size);
        let pass = |sequences: &[Sequence]| [teacher.token_stats_within(sequences, self.temperature, None, vocabulary).log_prob];
        let sequences = (0..batch.len()).map(|i| self.teacher_sequence(batch, i)).collect();
        let [log_prob] = self.pass_over(sequences, batch, cut, pass);
        batch.set(Column::TeacherLogProb, log_prob);
    }

    /// Returns how a batch is cut for passes of models that are not trained.
    fn reference_cut(&self, batch: &Batch) -> Cut {
        let config = &self.config.actor_rollout_ref.reference;
        let (by_tokens, tokens) = (config.log_prob_use_dynamic_bsz, config.log_prob_max_token_len_per_gpu);
        forward_cut(by_tokens, tokens, config.log_prob_micro_batch_size_per_gpu, batch)
    }

    /// Returns the statistics that `chosen` takes, for every response token of the batch in its order. Each rank computes its
    /// slices.
    fn token_stats<const N: usize>(
        &self,
        model: &CausalLm,
        reference: Option<&CausalLm>,
        batch: &Batch,
        cut: Cut,
        chosen: impl Fn(TokenStats) -> [Vec<f32>; N],
    ) -> [Vec<f32>; N] {
        let (model, reference) = (model.inference(), reference.map(CausalLm::inference));
        let comparison = reference.as_ref().map(ComparisonTarget::from);
        self.pass(batch, cut, |sequences| chosen(model.token_stats(sequences, self.temperature, comparison)))
    }

    /// Returns columns for every response token of the batch in its order, by `pass` over its micro-batches. Each rank passes
    /// over its slices.
    fn pass<const N: usize>(&self, batch: &Batch, cut: Cut, pass: impl Fn(&[Sequence]) -> [Vec<f32>; N]) -> [Vec<f32>; N] {
        self.pass_over(batch.sequences(), batch, cut, pass)
    }

    /// Like [`Self::pass`]; `sequences` have the response tokens of the batch.
    fn pass_over<const N: usize>(
        &self,
        sequences: Vec<Sequence>,
        batch: &Batch,
        cut: Cut,
        pass: impl Fn(&[Sequence]) -> [Vec<f32>; N],
    ) -> [Vec<f32>; N] {
        let cut = |slice: &[usize]| cut_slice(cut, &sequences, slice);
        passes::columns(&self.actor.ranks, &sequences, &batch.group, batch.offsets(), cut, pass)
    }
}

/// Reports the difference between the probabilities of generation and training, for sampled tokens (verl's
/// `calculate_debug_metrics`). Also reports the difference of log-probs, the only metric that shows differences for unlikely
/// tokens.
fn probability_difference(rollout: &[f32], actor: &[f32], metrics: &mut Metrics) {
    let probs = |x: &[f32]| x.iter().map(|&x| f64::from(x).exp()).collect::<Vec<_>>();
    let (r, a) = (probs(rollout), probs(actor));
    let diffs: Vec<f64> = r.iter().zip(&a).map(|(r, a)| (r - a).abs()).collect();
    let n = diffs.len() as f64;
    let mean = |x: &[f64]| x.iter().sum::<f64>() / n;
    let centred = |x: &[f64]| {
        let m = mean(x);
        x.iter().map(|x| x - m).collect::<Vec<_>>()
    };
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let (rc, ac, dc) = (centred(&r), centred(&a), centred(&diffs));
    metrics.set("training/rollout_probs_diff_valid", 1.0);
    metrics.set("training/rollout_probs_diff_max", diffs.iter().copied().fold(0.0, f64::max));
    metrics.set("training/rollout_probs_diff_mean", mean(&diffs));
    metrics.set("training/rollout_probs_diff_std", (dot(&dc, &dc) / (n - 1.0).max(1.0)).sqrt());
    let logs = rollout.iter().zip(actor).map(|(r, a)| (f64::from(*r) - f64::from(*a)).abs());
    metrics.set("training/rollout_log_probs_abs_diff_max", logs.fold(0.0, f64::max));
    metrics.set("training/rollout_actor_probs_pearson_corr", dot(&rc, &ac) / (dot(&rc, &rc) * dot(&ac, &ac)).sqrt());
}
