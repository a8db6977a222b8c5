//! Importance weights: the loss of a token is multiplied by the ratio of its probabilities under the policy that is trained and
//! the policy that generated.

use super::trained::{
    CorrectionMetrics, MAX_LOG_RATIO, Trained, max, mean, mean_of, min, share, std_of_sequences, std_of_tokens, sum,
};

/// The level of a weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// The ratio of each token: little variance, biased.
    Token,
    /// The product of the ratios of a sequence, for each of its tokens: unbiased, of high variance.
    Sequence,
}

/// Importance weights and their bounds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Importance {
    pub level: Level,
    pub upper: f64,
    pub lower: Option<f64>,
    /// Weights outside the bounds are 0 (IcePop, TRL's `*_mask`), not clamped (TIS, TRL's `*_truncate`).
    pub(crate) zero_outside: bool,
    /// Weights are divided by their mean over the batch.
    pub(crate) batch_normalize: bool,
}

impl Importance {
    /// Returns the weight of each trained token. verl: compute_rollout_correction_weights.
    pub(super) fn weigh(&self, batch: &Trained, report: &mut CorrectionMetrics) -> Vec<f64> {
        let log_ratio = match self.level {
            Level::Token => batch.log_ratio.clone(),
            Level::Sequence => batch.reduce(&batch.log_ratio, sum),
        };
        let raw: Vec<f64> = log_ratio.iter().map(|l| l.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()).collect();
        let bounded: Vec<f64> = raw.iter().map(|&weight| self.bound(weight)).collect();
        let per_token = |values: &[f64]| match self.level {
            Level::Token => values.to_vec(),
            Level::Sequence => batch.spread(values),
        };

        let (raw_tokens, mut weights) = (per_token(&raw), per_token(&bounded));
        match self.level {
            Level::Token => {
                report.add("rollout_is_max", max(&weights));
                report.add("rollout_is_min", min(&weights));
            }
            Level::Sequence => {
                report.add("rollout_is_max", max(&log_ratio).min(MAX_LOG_RATIO).exp());
                report.add("rollout_is_min", min(&log_ratio).min(MAX_LOG_RATIO).exp());
            }
        }
        let lower = self.lower.unwrap_or(1.0 / self.upper);
        report.add("rollout_is_ratio_fraction_high", share(&log_ratio, |l| l > self.upper.ln()));
        report.add("rollout_is_ratio_fraction_low", share(&log_ratio, |l| l < lower.ln()));
        self.report_tokens(&raw_tokens, &weights, report);
        report_sequences(&batch.reduce(&weights, mean), &batch.reduce(&raw_tokens, mean), lower, self.upper, report);

        if self.batch_normalize {
            let centre = mean(&bounded);
            let factor = if centre > 1e-8 { centre } else { 1.0 };
            weights.iter_mut().for_each(|weight| *weight /= factor);
            report.add("rollout_is_batch_norm_factor", factor);
        }
        weights
    }

    fn is_inside(&self, weight: f64) -> bool {
        weight <= self.upper && self.lower.is_none_or(|lower| weight >= lower)
    }

    fn bound(&self, weight: f64) -> f64 {
        if self.is_inside(weight) {
            weight
        } else if self.zero_outside {
            0.0
        } else {
            weight.min(self.upper).max(self.lower.unwrap_or(0.0))
        }
    }

    fn report_tokens(&self, raw: &[f64], weights: &[f64], report: &mut CorrectionMetrics) {
        let (first, second) = (mean(weights), mean_of(weights, |w| w * w));
        report.add("rollout_is_mean", first);
        report.add("rollout_is_std", std_of_tokens(weights));
        report.add("rollout_is_eff_sample_size", if second > 0.0 { first * first / second } else { 0.0 });
        if self.zero_outside {
            report.add("rollout_is_oob_ratio", share(raw, |weight| !self.is_inside(weight)));
        }
    }
}

/// Reports statistics of the mean weight of each sequence, bounded and unbounded.
fn report_sequences(weights: &[f64], raw: &[f64], lower: f64, upper: f64, report: &mut CorrectionMetrics) {
    report.add("rollout_is_seq_mean", mean(weights));
    report.add("rollout_is_seq_std", std_of_sequences(weights));
    report.add("rollout_is_seq_max", max(weights));
    report.add("rollout_is_seq_min", min(weights));
    report.add("rollout_is_seq_max_deviation", weights.iter().map(|w| (w - 1.0).abs()).fold(0.0, f64::max));
    report.add("rollout_is_seq_fraction_high", share(raw, |w| w > upper));
    report.add("rollout_is_seq_fraction_low", share(raw, |w| w < lower));
}
