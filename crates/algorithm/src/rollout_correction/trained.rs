//! The trained tokens of a batch, and the statistics that verl reports of them.

use std::ops::Range;

use crate::advantage::stats;
use crate::sequences;

pub(super) use stats::mean;

/// The bound of log-ratios before they become ratios, so that these stay finite (verl `SAFETY_BOUND`).
pub(crate) const MAX_LOG_RATIO: f64 = 20.0;

/// The trained tokens of a batch, one sequence after another; sequences without trained tokens are left out.
pub(super) struct Trained {
    /// The position of each token in the columns of the batch, which have `length` entries.
    position: Vec<usize>,
    length: usize,
    /// log π of the trained policy, and of the policy that generated.
    pub training: Vec<f64>,
    pub rollout: Vec<f64>,
    /// log r, the difference of the two log-probabilities.
    pub log_ratio: Vec<f64>,
    /// The tokens of each sequence, at least one.
    sequences: Vec<Range<usize>>,
}

impl Trained {
    /// # Panics
    /// If columns differ in length.
    pub(super) fn new(offsets: &[usize], mask: &[f32], training: &[f32], rollout: &[f32]) -> Self {
        assert!(mask.len() == training.len() && mask.len() == rollout.len(), "columns of one batch differ in length");
        let mut position = Vec::new();
        let mut ranges = Vec::new();
        for tokens in sequences(offsets) {
            let start = position.len();
            position.extend(tokens.filter(|&t| mask[t] != 0.0));
            if position.len() > start {
                ranges.push(start..position.len());
            }
        }
        let gather = |column: &[f32]| -> Vec<f64> { position.iter().map(|&t| f64::from(column[t])).collect() };
        let (training, rollout) = (gather(training), gather(rollout));
        let log_ratio = training.iter().zip(&rollout).map(|(t, r)| t - r).collect();
        Self { length: mask.len(), training, rollout, log_ratio, sequences: ranges, position }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.position.is_empty()
    }

    /// Returns log r, clamped to ±[`MAX_LOG_RATIO`].
    pub(crate) fn bounded_log_ratio(&self) -> Vec<f64> {
        self.log_ratio.iter().map(|l| l.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)).collect()
    }

    /// Reduces the values of each sequence's tokens to one value.
    pub(super) fn reduce(&self, tokens: &[f64], by: impl Fn(&[f64]) -> f64) -> Vec<f64> {
        self.sequences.iter().map(|range| by(&tokens[range.clone()])).collect()
    }

    /// Gives each token the value of its sequence.
    pub(super) fn spread<T: Copy>(&self, per_sequence: &[T]) -> Vec<T> {
        let repeat = |(range, &value): (&Range<usize>, &T)| std::iter::repeat_n(value, range.len());
        self.sequences.iter().zip(per_sequence).flat_map(repeat).collect()
    }

    /// Returns true for each sequence all of whose tokens are true.
    pub(super) fn all(&self, tokens: &[bool]) -> Vec<bool> {
        self.sequences.iter().map(|range| tokens[range.clone()].iter().all(|&t| t)).collect()
    }

    /// Writes the values of the trained tokens into a column of the batch, which is 0 elsewhere.
    pub(super) fn scatter(&self, tokens: &[f64]) -> Vec<f32> {
        let mut column = vec![0.0; self.length];
        for (&t, &value) in self.position.iter().zip(tokens) {
            column[t] = value as f32;
        }
        column
    }
}

/// Metrics in the order in which they were added.
#[derive(Default)]
pub(super) struct CorrectionMetrics(pub Vec<(String, f64)>);

impl CorrectionMetrics {
    pub(super) fn add(&mut self, name: &str, value: f64) {
        self.0.push((format!("rollout_corr/{name}"), value));
    }
}

// These statistics need at least one value.

pub(super) fn sum(values: &[f64]) -> f64 {
    values.iter().sum()
}

/// Returns the mean of `f` over the values.
pub(crate) fn mean_of(values: &[f64], f: impl Fn(f64) -> f64) -> f64 {
    values.iter().map(|&v| f(v)).sum::<f64>() / values.len() as f64
}

/// Returns the share of the values for which `holds` is true.
pub(super) fn share<T: Copy>(values: &[T], holds: impl Fn(T) -> bool) -> f64 {
    values.iter().filter(|&&v| holds(v)).count() as f64 / values.len() as f64
}

pub(super) fn max(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

pub(super) fn min(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Returns the standard deviation with n, as verl computes it over tokens.
pub(crate) fn std_of_tokens(values: &[f64]) -> f64 {
    let centre = mean(values);
    mean_of(values, |v| (v - centre).powi(2)).sqrt()
}

/// Returns the standard deviation with n − 1, as verl computes it over sequences; 0 for a single value.
pub(crate) fn std_of_sequences(values: &[f64]) -> f64 {
    stats::std(values, mean(values))
}
