//! Phases `old_log_prob`, `ref` and `teacher`: log-probabilities of the sampled tokens under the policy before the update, under the
//! reference, and under the teacher.

use super::mini_batch::forward_cut;
use super::side::LearningSide;
use crate::algorithm::aggregate::{token_weights, trained_sequences};
use crate::algorithm::scatter;
use crate::model::{CausalLm, Comparison, Cut, TokenStats};
use crate::tracking::Metrics;
use crate::trainer::batch::Batch;
use crate::trainer::columns::Column;

impl LearningSide {
    pub fn old_log_probs(&self, batch: &mut Batch, metrics: &mut Metrics) {
        let rollout = &self.config.actor_rollout_ref.rollout;
        let cut = forward_cut(
            rollout.log_prob_use_dynamic_bsz,
            rollout.log_prob_max_token_len_per_gpu,
            rollout.log_prob_micro_batch_size_per_gpu,
            batch,
        );
        let stats = token_stats(&self.actor.model.frozen(), None, batch, cut, self.temperature);
        let actor = &self.config.actor_rollout_ref.actor;
        let width = self.config.data.max_response_length;
        // A mean over responses here is of those that have a trained token, as verl's, which gives this metric no other count.
        let count = trained_sequences(batch.offsets(), &batch[Column::Mask]);
        let weights =
            token_weights(self.aggregation, batch.offsets(), &batch[Column::Mask], count, actor.loss_scale_factor, width);
        let entropy: f64 = stats.entropy.iter().zip(&weights).map(|(h, w)| *h as f64 * *w as f64).sum();
        metrics.set("actor/entropy", entropy);
        if rollout.calculate_log_probs {
            probability_difference(&batch[Column::RolloutLogProb], &stats.log_prob, metrics);
        }
        if self.reads_sum_pi_squared {
            batch.set(Column::SumPiSquared, stats.sum_pi_squared);
        }
        batch.set(Column::OldLogProb, stats.log_prob);
    }

    pub fn reference_log_probs(&self, batch: &mut Batch) {
        let Some(reference) = &self.reference else { return };
        let cut = self.reference_cut(batch);
        batch.set(Column::RefLogProb, token_stats(reference, None, batch, cut, self.temperature).log_prob);
        if self.full_kl_in_reward {
            let stats = token_stats(&self.actor.model.frozen(), Some(reference), batch, cut, self.temperature);
            batch.set(Column::FullKl, stats.full_kl);
        }
    }

    /// The teacher's log-probabilities, where the loss of distillation reads them.
    pub fn teacher_log_probs(&self, batch: &mut Batch) {
        let Some(distillation) = self.distillation.as_ref().filter(|distillation| distillation.passes_before()) else { return };
        let stats = token_stats(&distillation.teacher, None, batch, self.reference_cut(batch), self.temperature);
        batch.set(Column::TeacherLogProb, stats.log_prob);
    }

    /// The division of a batch for passes of models that are not trained.
    fn reference_cut(&self, batch: &Batch) -> Cut {
        let config = &self.config.actor_rollout_ref.reference;
        let (by_tokens, tokens) = (config.log_prob_use_dynamic_bsz, config.log_prob_max_token_len_per_gpu);
        forward_cut(by_tokens, tokens, config.log_prob_micro_batch_size_per_gpu, batch)
    }
}

/// Statistics of every response token of the batch, in its order.
fn token_stats(model: &CausalLm, reference: Option<&CausalLm>, batch: &Batch, cut: Cut, temperature: f32) -> TokenStats {
    let sequences = batch.sequences();
    let tokens = batch[Column::Mask].len();
    let column = || vec![0.0; tokens];
    let full_kl = if reference.is_some() { column() } else { Vec::new() };
    let mut all =
        TokenStats { log_prob: column(), entropy: column(), sum_pi_squared: column(), full_kl, ..TokenStats::default() };
    let comparison = reference.map(Comparison::from);
    for micro in cut.micro_batches(&sequences) {
        let stats = model.token_stats(&micro.iter().map(|&i| sequences[i]).collect::<Vec<_>>(), temperature, comparison);
        let columns = [
            (&mut all.log_prob, &stats.log_prob),
            (&mut all.entropy, &stats.entropy),
            (&mut all.sum_pi_squared, &stats.sum_pi_squared),
            (&mut all.full_kl, &stats.full_kl),
        ];
        for (to, from) in columns.into_iter().filter(|(_, from)| !from.is_empty()) {
            scatter(to, from, batch.offsets(), &micro);
        }
    }
    all
}

/// The difference between the probabilities of generation and of training (verl's `calculate_debug_metrics`), and, what verl leaves out, the
/// log-probabilities: of an unlikely token only these show a difference.
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
