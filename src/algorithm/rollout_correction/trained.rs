//! The trained tokens of a batch, and the statistics that verl reports of them.

use std::ops::Range;

use crate::algorithm::advantage::stats;
use crate::algorithm::sequences;

pub use stats::mean;

/// Log-probabilities are that far apart at most before they become a ratio, so that it stays finite (verl `SAFETY_BOUND`).
pub const MAX_LOG_RATIO: f64 = 20.0;

/// The trained tokens of a batch, one sequence after another; sequences that have none are not there.
pub struct Trained {
    /// Where each token stands in the columns of the batch, which have `length` numbers.
    position: Vec<usize>,
    length: usize,
    /// log π of the policy that is trained, and of the one that generated.
    pub training: Vec<f64>,
    pub rollout: Vec<f64>,
    /// Their difference, log r.
    pub log_ratio: Vec<f64>,
    /// The tokens of each sequence, at least one.
    sequences: Vec<Range<usize>>,
}

impl Trained {
    /// # Panics
    /// If columns differ in length.
    pub fn new(offsets: &[usize], mask: &[f32], training: &[f32], rollout: &[f32]) -> Self {
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

    pub fn is_empty(&self) -> bool {
        self.position.is_empty()
    }

    /// log r, bounded.
    pub fn bounded_log_ratio(&self) -> Vec<f64> {
        self.log_ratio.iter().map(|l| l.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO)).collect()
    }

    /// One number per sequence from those of its tokens.
    pub fn reduce(&self, tokens: &[f64], by: impl Fn(&[f64]) -> f64) -> Vec<f64> {
        self.sequences.iter().map(|range| by(&tokens[range.clone()])).collect()
    }

    /// The number of its sequence for each token.
    pub fn spread<T: Copy>(&self, per_sequence: &[T]) -> Vec<T> {
        let repeat = |(range, &value): (&Range<usize>, &T)| std::iter::repeat_n(value, range.len());
        self.sequences.iter().zip(per_sequence).flat_map(repeat).collect()
    }

    /// For each sequence, whether it holds for all of its tokens.
    pub fn all(&self, tokens: &[bool]) -> Vec<bool> {
        self.sequences.iter().map(|range| tokens[range.clone()].iter().all(|&t| t)).collect()
    }

    /// Numbers of the trained tokens as a column of the batch, 0 elsewhere.
    pub fn scatter(&self, tokens: &[f64]) -> Vec<f32> {
        let mut column = vec![0.0; self.length];
        for (&t, &value) in self.position.iter().zip(tokens) {
            column[t] = value as f32;
        }
        column
    }
}

/// Metrics in the order they were made.
#[derive(Default)]
pub struct Report(pub Vec<(String, f64)>);

impl Report {
    pub fn add(&mut self, name: &str, value: f64) {
        self.0.push((format!("rollout_corr/{name}"), value));
    }
}

// The statistics of at least one value.

pub fn sum(values: &[f64]) -> f64 {
    values.iter().sum()
}

/// The mean of `f` of the values.
pub fn mean_of(values: &[f64], f: impl Fn(f64) -> f64) -> f64 {
    values.iter().map(|&v| f(v)).sum::<f64>() / values.len() as f64
}

/// The share of values of which it holds.
pub fn share<T: Copy>(values: &[T], holds: impl Fn(T) -> bool) -> f64 {
    values.iter().filter(|&&v| holds(v)).count() as f64 / values.len() as f64
}

pub fn max(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

pub fn min(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// The standard deviation with n, as verl takes it over tokens.
pub fn std_of_tokens(values: &[f64]) -> f64 {
    let centre = mean(values);
    mean_of(values, |v| (v - centre).powi(2)).sqrt()
}

/// The standard deviation with n − 1, as verl takes it over sequences; 0 for a single one.
pub fn std_of_sequences(values: &[f64]) -> f64 {
    stats::std(values, mean(values))
}
