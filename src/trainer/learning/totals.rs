//! Metrics of all updates of a step.

use crate::algorithm::loss::LossResult;
use crate::algorithm::policy_loss::Metric;
use crate::algorithm::sequences;
use crate::optim::Update;
use crate::tracking::Metrics;

/// Sums that become means.
#[derive(Default)]
pub struct Totals {
    /// Terms of the loss, weighted like it: they add up within a mini-batch and are averaged over updates.
    per_update: Vec<(String, f64)>,
    /// Means over tokens: (name, sum, count).
    per_token: Vec<(&'static str, f64, f64)>,
    /// Smallest and largest numbers of tokens.
    ranges: Vec<(&'static str, f64, f64)>,
    /// log(π/π_old) of every sequence with a trained token, in each of its updates; and of every trained token π/π_old, its
    /// square and 1, summed.
    log_ratios: Vec<f64>,
    ratios: [f64; 3],
}

impl Totals {
    pub fn add(&mut self, result: &LossResult) {
        for (name, value) in &result.terms {
            self.add_mean(name, *value);
        }
        self.add_metrics(&result.metrics);
    }

    /// Means over tokens.
    pub fn add_metrics(&mut self, metrics: &[Metric]) {
        for metric in metrics {
            match self.per_token.iter_mut().find(|(name, ..)| *name == metric.name) {
                Some((_, sum, count)) => {
                    *sum += metric.sum;
                    *count += metric.count;
                }
                None => self.per_token.push((metric.name, metric.sum, metric.count)),
            }
        }
    }

    /// A number of one update, or its part in one.
    pub fn add_mean(&mut self, name: &str, value: f64) {
        match self.per_update.iter_mut().find(|(known, _)| known == name) {
            Some((_, total)) => *total += value,
            None => self.per_update.push((name.to_owned(), value)),
        }
    }

    /// Numbers of tokens, of which the smallest and the largest are reported as `NAME_min` and `NAME_max`.
    pub fn add_range(&mut self, name: &'static str, values: &[f32]) {
        let bounds = |(least, most): (f64, f64), x: &f32| (least.min(f64::from(*x)), most.max(f64::from(*x)));
        let (least, most) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), bounds);
        match self.ranges.iter_mut().find(|(known, ..)| *known == name) {
            Some((_, a, b)) => (*a, *b) = (a.min(least), b.max(most)),
            None => self.ranges.push((name, least, most)),
        }
    }

    /// Adds the numbers of an optimizer update. `learner` is the beginning of their names.
    pub fn add_update(&mut self, learner: &str, update: &Update) {
        self.add_mean(&format!("{learner}/grad_norm"), update.grad_norm);
        self.add_mean(&format!("{learner}/skipped_updates"), if update.applied { 0.0 } else { 1.0 });
    }

    /// The ratios of a micro-batch, for the metrics that TRL has of them.
    pub fn add_ratios(&mut self, offsets: &[usize], mask: &[f32], log_prob: &[f32], old_log_prob: Option<&[f32]>) {
        for tokens in sequences(offsets) {
            let trained: Vec<usize> = tokens.filter(|&t| mask[t] != 0.0).collect();
            if !trained.is_empty() {
                let old = old_log_prob.unwrap_or(log_prob);
                let log_ratios: Vec<f64> = trained.iter().map(|&t| f64::from(log_prob[t]) - f64::from(old[t])).collect();
                self.log_ratios.push(log_ratios.iter().sum());
                for ratio in log_ratios.iter().map(|d| d.exp()) {
                    self.ratios = [self.ratios[0] + ratio, self.ratios[1] + ratio * ratio, self.ratios[2] + 1.0];
                }
            }
        }
    }

    /// The means over updates and over tokens.
    pub fn report_means(&mut self, updates: usize, metrics: &mut Metrics) {
        // + 0.0: never −0
        metrics.extend(self.per_update.drain(..).map(|(name, total)| (name, total / updates as f64 + 0.0)));
        for (name, least, most) in self.ranges.drain(..).filter(|(_, least, most)| least <= most) {
            metrics.set(format!("{name}_min"), least);
            metrics.set(format!("{name}_max"), most);
        }
        metrics.extend(self.per_token.drain(..).map(|(name, sum, count)| (name, sum / count.max(1.0) + 0.0)));
    }

    /// All of them, with the ratios of a policy.
    pub fn report(mut self, updates: usize, metrics: &mut Metrics) {
        self.report_means(updates, metrics);
        let squares: f64 = self.log_ratios.iter().map(|d| d * d).sum();
        metrics.set("policy/approxkl_avg", 0.5 * squares / self.log_ratios.len().max(1) as f64);
        let [sum, squares, count] = self.ratios;
        let mean = sum / count.max(1.0);
        metrics.set("val/ratio", mean);
        metrics.set("val/ratio_var", ((squares - mean * sum) / (count - 1.0).max(1.0)).max(0.0));
    }
}
