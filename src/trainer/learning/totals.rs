//! Metrics of all updates of a step.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::trainer::batch::columns::{BatchColumns, Column};
use crate::trainer::batch::nonfinite::NonfiniteValue;
use crate::trainer::metrics::depth::probability_differences;
use burnish_algorithm::loss::LossResult;
use burnish_algorithm::policy_loss::Metric;
use burnish_algorithm::sequences;
use burnish_optim::{LayerChange, Update, relative_changes};
use burnish_tracking::Metrics;

/// Values that become means. They are kept one by one and summed once, in the order of slices and micro-batches, so that sums do
/// not depend on the ranks.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Totals {
    /// Terms of the loss, weighted like the loss: summed within a mini-batch and averaged over updates.
    per_update: Vec<(Name, Vec<f64>)>,
    /// Means over tokens: sum and count of each micro-batch.
    per_token: Vec<(Name, Vec<(f64, f64)>)>,
    /// Minimum and maximum over tokens.
    ranges: Vec<(Name, f64, f64)>,
    /// log(π/π_old) of every sequence with a trained token, in each of its updates; and π/π_old of every trained token.
    log_ratios: Vec<f64>,
    ratios: Vec<f64>,
}

/// The name of a metric.
type Name = Cow<'static, str>;

/// Adds values under this name.
fn add<T>(all: &mut Vec<(Name, Vec<T>)>, name: Name, numbers: impl IntoIterator<Item = T>) {
    match all.iter_mut().find(|(known, _)| *known == name) {
        Some((_, known)) => known.extend(numbers),
        None => all.push((name, numbers.into_iter().collect())),
    }
}

impl Totals {
    pub(crate) fn add(&mut self, result: &LossResult) {
        for (name, value) in &result.terms {
            self.add_mean(name, *value);
        }
        self.add_metrics(&result.metrics);
    }

    /// Adds means over tokens.
    pub(crate) fn add_metrics(&mut self, metrics: &[Metric]) {
        for metric in metrics {
            add(&mut self.per_token, metric.name.clone(), [(metric.sum, metric.count)]);
        }
    }

    /// Adds the value of one update, or a part of it.
    pub(crate) fn add_mean(&mut self, name: &str, value: f64) {
        add(&mut self.per_update, name.to_owned().into(), [value]);
    }

    /// Returns the value of the only update so far; NaN without the name.
    pub(crate) fn sum_of_update(&self, name: &str) -> f64 {
        self.per_update.iter().find(|(known, _)| known == name).map_or(f64::NAN, |(_, values)| values.iter().sum())
    }

    /// Adds values of tokens; `NAME_min` and `NAME_max` report their range.
    pub(crate) fn add_range(&mut self, name: &'static str, values: &[f32]) {
        let bounds = |(min, max): (f64, f64), x: &f32| (min.min(f64::from(*x)), max.max(f64::from(*x)));
        let (min, max) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), bounds);
        self.widen(name.into(), min, max);
    }

    fn widen(&mut self, name: Name, min: f64, max: f64) {
        match self.ranges.iter_mut().find(|(known, ..)| *known == name) {
            Some((_, a, b)) => (*a, *b) = (a.min(min), b.max(max)),
            None => self.ranges.push((name, min, max)),
        }
    }

    /// Adds the results of the slices of a mini-batch, in their order. Returns the first value that is not finite.
    pub(crate) fn merge(&mut self, slices: Vec<(Self, Option<NonfiniteValue>)>) -> Option<NonfiniteValue> {
        let mut first = None;
        for (slice, fault) in slices {
            let Self { per_update, per_token, ranges, log_ratios, ratios } = slice;
            per_update.into_iter().for_each(|(name, values)| add(&mut self.per_update, name, values));
            per_token.into_iter().for_each(|(name, values)| add(&mut self.per_token, name, values));
            ranges.into_iter().for_each(|(name, min, max)| self.widen(name, min, max));
            self.log_ratios.extend(log_ratios);
            self.ratios.extend(ratios);
            first = first.or(fault);
        }
        first
    }

    /// Adds the values of an optimizer update. `learner`: the prefix of their names.
    pub(crate) fn add_update(&mut self, learner: &str, update: &Update) {
        self.add_mean(&format!("{learner}/grad_norm"), update.grad_norm);
        self.add_mean(&format!("{learner}/skipped_updates"), if update.applied { 0.0 } else { 1.0 });
    }

    /// Adds ‖ΔW‖ / ‖W‖ of an optimizer update. `learner`: the prefix of its names.
    pub(crate) fn add_change(&mut self, learner: &str, layers: &[LayerChange]) {
        let (all, largest) = relative_changes(layers);
        self.add_mean(&format!("{learner}/update_to_weight"), all);
        self.add_mean(&format!("{learner}/update_to_weight_max"), largest);
    }

    /// Adds the ratios of a micro-batch, for TRL's metrics of ratios.
    pub(crate) fn add_ratios(&mut self, offsets: &[usize], mask: &[f32], log_prob: &[f32], old_log_prob: Option<&[f32]>) {
        for tokens in sequences(offsets) {
            let trained: Vec<usize> = tokens.filter(|&t| mask[t] != 0.0).collect();
            if !trained.is_empty() {
                let old = old_log_prob.unwrap_or(log_prob);
                let log_ratios: Vec<f64> = trained.iter().map(|&t| f64::from(log_prob[t]) - f64::from(old[t])).collect();
                self.log_ratios.push(log_ratios.iter().sum());
                self.ratios.extend(log_ratios.iter().map(|d| d.exp()));
            }
        }
    }

    /// Adds the values of a micro-batch of the first update of a step, which show if generation and training compute the same: the
    /// range of π/π_old, where `old_log_prob` exists, as `actor/first_ratio`; and the difference of probabilities by depth, unless
    /// the pass of the old policy has reported it.
    pub(crate) fn add_first(&mut self, columns: &BatchColumns, log_prob: &[f32], old_log_prob: Option<&[f32]>) {
        let mask = &columns[Column::Mask];
        if let Some(old) = old_log_prob {
            let trained = (0..mask.len()).filter(|&t| mask[t] != 0.0);
            self.add_range("actor/first_ratio", &trained.map(|t| (log_prob[t] - old[t]).exp()).collect::<Vec<_>>());
        }
        if columns.get(Column::OldLogProb).is_none()
            && let Some(generation) = columns.get(Column::RolloutLogProb)
        {
            let by_depth = probability_differences(columns.offsets(), |t| mask[t] != 0.0, generation, log_prob);
            by_depth.into_iter().for_each(|(name, sum, count)| add(&mut self.per_token, name.into(), [(sum, count)]));
        }
    }

    /// Reports the means over updates and over tokens.
    pub(crate) fn report_means(&mut self, updates: usize, metrics: &mut Metrics) {
        // Adding 0.0 turns −0 into 0.
        let total = |values: Vec<f64>| values.into_iter().sum::<f64>();
        metrics.extend(self.per_update.drain(..).map(|(name, values)| (name.into_owned(), total(values) / updates as f64 + 0.0)));
        for (name, min, max) in self.ranges.drain(..).filter(|(_, min, max)| min <= max) {
            metrics.set(format!("{name}_min"), min);
            metrics.set(format!("{name}_max"), max);
        }
        let mean = |values: Vec<(f64, f64)>| {
            let (sums, counts): (Vec<f64>, Vec<f64>) = values.into_iter().unzip();
            total(sums) / total(counts).max(1.0) + 0.0
        };
        metrics.extend(self.per_token.drain(..).map(|(name, values)| (name.into_owned(), mean(values))));
    }

    /// Reports all metrics, with the ratios of a policy.
    pub(crate) fn report(mut self, updates: usize, metrics: &mut Metrics) {
        self.report_means(updates, metrics);
        let squares: f64 = self.log_ratios.iter().map(|d| d * d).sum();
        metrics.set("policy/approxkl_avg", 0.5 * squares / self.log_ratios.len().max(1) as f64);
        let (sum, squares) = (self.ratios.iter().sum::<f64>(), self.ratios.iter().map(|ratio| ratio * ratio).sum::<f64>());
        let count = self.ratios.len() as f64;
        let mean = sum / count.max(1.0);
        metrics.set("val/ratio", mean);
        metrics.set("val/ratio_var", ((squares - mean * sum) / (count - 1.0).max(1.0)).max(0.0));
    }
}
