//! Phases `values` and `update_critic`: what the critic expects of every state, and its update towards the returns.

use super::Trainer;
use super::batch::Batch;
use super::mini_batch::{forward_cut, micro_cut, mini_batches};
use super::totals::Totals;
use crate::algorithm::aggregate::token_weights;
use crate::algorithm::value_loss::{ValueColumns, value_loss};
use crate::algorithm::{gather, gather_offsets, scatter};
use crate::model::Gradients;
use crate::tracking::Metrics;

impl Trainer {
    /// The value of the state before every response token.
    pub(super) fn values(&self, batch: &mut Batch) {
        let Some(critic) = &self.critic else { return };
        let config = &self.config.critic;
        let (tokens, sequences) = (config.forward_max_token_len_per_gpu, config.forward_micro_batch_size_per_gpu);
        let cut = forward_cut(config.use_dynamic_bsz, tokens, sequences, batch);
        let (sequences, model) = (batch.sequences(), critic.model.frozen());
        let mut values = vec![0.0; batch.mask.len()];
        for micro in cut.micro_batches(&sequences) {
            let found = model.values(&micro.iter().map(|&i| sequences[i]).collect::<Vec<_>>());
            scatter(&mut values, &found, &batch.offsets, &micro);
        }
        batch.values = Some(values);
    }

    /// For each epoch and mini-batch one AdamW update; gradients do not depend on micro-batches. Trajectories without a score
    /// teach it nothing.
    pub(super) fn update_critic(&mut self, batch: &Batch, metrics: &mut Metrics) {
        let (Some(plan), Some(old_values)) = (self.plan.critic, &batch.values) else { return };
        let (config, step) = (self.config.critic.clone(), self.step);
        let mask = batch.counted_mask();
        let seed = config.data_loader_seed.unwrap_or(self.config.trainer.seed);
        let shuffle = config.shuffle.then_some(("critic mini-batches", seed));
        let width = self.config.data.max_response_length;
        let aggregation = self.critic_aggregation;
        let Some(critic) = &mut self.critic else { return };
        let lr = critic.lr_at(step as usize - 1);
        let mut totals = Totals::default();
        for mini_batch in mini_batches(&plan, batch.len(), shuffle, step) {
            let own = |column: &[f32]| gather(column, &batch.offsets, &mini_batch.trajectories);
            let (offsets, mask) = (gather_offsets(&batch.offsets, &mini_batch.trajectories), own(&mask));
            let (old_values, returns) = (own(old_values), own(&batch.returns));
            let weights = token_weights(aggregation, &offsets, &mask, config.loss_scale_factor, width);
            let sequences: Vec<_> = mini_batch.trajectories.iter().map(|&i| batch.sequence(i)).collect();
            let mut gradients = Gradients::default();
            for micro in micro_cut(&plan).micro_batches(&sequences) {
                let of_micro: Vec<_> = micro.iter().map(|&j| sequences[j]).collect();
                let own = |column: &[f32]| gather(column, &offsets, &micro);
                critic.model.value_backward(&of_micro, &mut gradients, |values| {
                    let result = value_loss(
                        &ValueColumns {
                            mask: &own(&mask),
                            values,
                            old_values: &own(&old_values),
                            returns: &own(&returns),
                            weights: &own(&weights),
                        },
                        config.cliprange_value,
                    );
                    totals.add_mean("critic/vf_loss", result.loss);
                    totals.add_metrics(&result.metrics);
                    result.d_values
                });
            }
            let update = critic.update(gradients, lr);
            totals.add_mean("critic/grad_norm", update.grad_norm);
            totals.add_mean("critic/skipped_updates", if update.applied { 0.0 } else { 1.0 });
        }
        totals.report_means(plan.updates_per_step, metrics);
        metrics.set("critic/lr", lr);
    }
}
