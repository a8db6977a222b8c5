//! Metrics of the steps of a run.

use std::collections::BTreeMap;

/// The metrics of a step.
#[derive(Clone, Debug, Default)]
pub struct MetricRow {
    /// The step; validation before the first is step 0.
    pub step: u64,
    /// Values by name. NaN is a value.
    pub values: BTreeMap<String, f64>,
}

/// Rows by step, to which values are added in any order.
#[derive(Default)]
pub(crate) struct RowsByStep(BTreeMap<u64, BTreeMap<String, f64>>);

impl RowsByStep {
    /// Adds values to the row of a step. The last value of a name counts.
    pub(crate) fn add(&mut self, step: u64, values: impl IntoIterator<Item = (String, f64)>) {
        self.0.entry(step).or_default().extend(values);
    }

    /// Returns true without rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the rows in the order of their steps.
    pub(crate) fn into_rows(self) -> Vec<MetricRow> {
        self.0.into_iter().map(|(step, values)| MetricRow { step, values }).collect()
    }
}

/// Returns the first step of the first `count` values in a row that the predicate accepts.
pub(crate) fn first_streak(series: &[(u64, f64)], count: usize, accepts: impl Fn(f64) -> bool) -> Option<u64> {
    series.windows(count).find(|window| window.iter().all(|(_, value)| accepts(*value))).map(|window| window[0].0)
}

/// Returns the first step of the values in a row at the end that the predicate accepts, if there are at least `count`.
pub(crate) fn last_streak(series: &[(u64, f64)], count: usize, accepts: impl Fn(f64) -> bool) -> Option<u64> {
    let streak: Vec<u64> = series.iter().rev().take_while(|(_, value)| accepts(*value)).map(|(step, _)| *step).collect();
    streak.last().copied().filter(|_| streak.len() >= count)
}

/// Returns the first values.
pub(crate) fn beginning(series: &[(u64, f64)], count: usize) -> &[(u64, f64)] {
    &series[..count.min(series.len())]
}

/// Returns the last values.
pub(crate) fn ending(series: &[(u64, f64)], count: usize) -> &[(u64, f64)] {
    &series[series.len().saturating_sub(count)..]
}

/// Returns the mean of the values; 0 without values.
pub(crate) fn mean(values: &[(u64, f64)]) -> f64 {
    // The sum of no floats is -0.
    values.iter().fold(0.0, |sum, (_, value)| sum + value) / values.len().max(1) as f64
}

/// Returns the median of the values; 0 without values.
pub(crate) fn median(values: &[(u64, f64)]) -> f64 {
    let mut sorted: Vec<f64> = values.iter().map(|(_, value)| *value).collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// Returns the largest value and its step.
pub(crate) fn largest(values: &[(u64, f64)]) -> Option<(u64, f64)> {
    values.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))
}
