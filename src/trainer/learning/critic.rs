//! Phases `values` and `update_critic`: the critic's value of every state, and its update towards the returns.

use anyhow::Result;

use super::mini_batch::{MiniBatch, cut_slice, forward_cut, lengths, micro_batches, mini_batches};
use super::passes;
use super::side::LearningSide;
use super::totals::Totals;
use crate::job::Context;
use crate::trainer::batch::Batch;
use crate::trainer::batch::columns::Column;
use crate::trainer::batch::nonfinite::{NonfiniteValue, nonfinite_sequence, on_nonfinite};
use crate::trainer::metrics;
use burnish_algorithm::aggregate::{AllOf, grouped_token_weights};
use burnish_algorithm::gather;
use burnish_algorithm::value_loss::{ValueColumns, value_loss};
use burnish_model::Sequence;
use burnish_optim::{GradientSum, Update};
use burnish_tracking::Metrics;

impl LearningSide {
    /// Computes the value of the state before every response token. Each rank computes its slices.
    pub fn values(&self, batch: &mut Batch) {
        let Some(critic) = &self.critic else { return };
        let config = &self.config.critic;
        let (tokens, sequences) = (config.forward_max_token_len_per_gpu, config.forward_micro_batch_size_per_gpu);
        let cut = forward_cut(config.use_dynamic_bsz, tokens, sequences, batch);
        let (sequences, model) = (batch.sequences(), critic.model.inference());
        let cut = |slice: &[usize]| cut_slice(cut, &sequences, slice);
        let pass = |sequences: &[Sequence]| [model.values(sequences)];
        let [values] = passes::columns(&critic.ranks, &sequences, &batch.group, batch.offsets(), cut, pass);
        batch.set(Column::Values, values);
    }

    /// Updates the critic towards the returns, once per epoch and mini-batch; gradients do not depend on micro-batches. Skips
    /// trajectories that are not `comparable`, because they have no return.
    ///
    /// # Errors
    /// If a value or a gradient is not finite and `trainer.on_nonfinite=error`, or an update broke the weights.
    pub fn update_critic(&mut self, batch: &Batch, comparable: &[bool], at: &Context, metrics: &mut Metrics) -> Result<()> {
        let (Some(plan), Some(old_values)) = (self.plan.critic, batch.get(Column::Values)) else { return Ok(()) };
        let (config, step) = (self.config.critic.clone(), at.step);
        let mask = batch.mask_of(comparable);
        metrics::of_values(old_values, &batch[Column::Returns], &mask, metrics);
        let seed = config.data_loader_seed.unwrap_or(self.config.trainer.seed);
        let shuffle = config.shuffle.then_some(("critic mini-batches", seed));
        let width = self.config.data.max_response_length;
        let aggregation = self.critic_aggregation;
        let lr = self.critic.as_ref().map_or(0.0, |critic| critic.lr_at(step as usize - 1));
        let mut totals = Totals::default();
        for MiniBatch { trajectories, size, prompts, .. } in mini_batches(&plan, batch, &mask, shuffle, step) {
            let Some(critic) = &mut self.critic else { return Ok(()) };
            let mut columns = batch.columns().select(&trajectories);
            columns.set(Column::Mask, gather(&mask, batch.offsets(), &trajectories));
            let counted = &columns[Column::Mask];
            let groups: Vec<usize> = trajectories.iter().map(|&i| batch.group[i]).collect();
            let all = AllOf { sequences: size, prompts, groups: &groups };
            let scale = config.loss_scale_factor;
            let weights = grouped_token_weights(aggregation, columns.offsets(), counted, all, scale, width);
            columns.set(Column::LossWeights, weights);
            let sequences: Vec<_> = trajectories.iter().map(|&i| batch.sequence(i)).collect();
            let slices = critic.ranks.slices().cut(&lengths(&sequences), &groups);
            let model = critic.model.for_passes();
            let (gradients, found) = GradientSum::over(&critic.ranks, &slices, |slice, gradients| {
                let (mut totals, mut nonfinite) = (Totals::default(), None);
                for micro in micro_batches(&plan, &sequences, slice) {
                    let of_micro: Vec<_> = micro.iter().map(|&j| sequences[j]).collect();
                    model.value_backward(&of_micro, gradients, |values| {
                        let columns = columns.select(&micro);
                        if let Some(sequence) = nonfinite_sequence(values, columns.offsets()) {
                            let trajectory = Some(trajectories[micro[sequence]]);
                            nonfinite.get_or_insert(NonfiniteValue { what: "critic: a value".to_owned(), trajectory });
                        }
                        let columns = ValueColumns {
                            mask: &columns[Column::Mask],
                            values,
                            old_values: &columns[Column::Values],
                            returns: &columns[Column::Returns],
                            weights: &columns[Column::LossWeights],
                        };
                        let result = value_loss(&columns, config.cliprange_value);
                        totals.add_mean("critic/vf_loss", result.loss);
                        totals.add_metrics(&result.metrics);
                        result.d_values
                    });
                    critic.ranks.beat();
                }
                (totals, nonfinite)
            });
            // A second owner of the parameters would make the update copy each of them.
            drop(model);
            let nonfinite = totals.merge(found);
            let update = match &nonfinite {
                None => critic.update(gradients, lr)?,
                Some(_) => Update::skipped(),
            };
            if let Some(nonfinite) = nonfinite.or(NonfiniteValue::of_gradient("critic", &update)) {
                on_nonfinite(&nonfinite, batch, &trajectories, at)?;
            }
            totals.add_update("critic", &update);
        }
        totals.report_means(plan.updates_per_step, metrics);
        metrics.set("critic/lr", lr);
        self.wait()
    }
}
