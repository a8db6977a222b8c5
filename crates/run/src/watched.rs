//! Tracks the best value of one validation metric.

use std::ops::RangeInclusive;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::info::BestSoFar;
use burnish_util::json_number::from_value;
use burnish_util::jsonl::lines;
use burnish_util::number::four_digits;

/// The validation metric whose best value is recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchedMetric {
    /// Name of the metric. `None` means the first metric that begins with `val-core/`, or `val/loss`, whose smallest value is the
    /// best.
    pub metric: Option<String>,
    pub greater_is_better: bool,
}

/// Results of the validations so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Validations {
    pub best: Option<BestSoFar>,
    /// Value of the last validation.
    pub last: Option<f64>,
    /// First and last values of the watched metric and of accuracies, in the order of their first values.
    pub curves: Vec<ValidationCurve>,
}

/// The first and the last value of a validation metric.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ValidationCurve {
    pub metric: String,
    pub first: (u64, f64),
    pub last: (u64, f64),
}

/// Accuracies of validations that are followed in addition to the watched metric.
const ACCURACIES: [&str; 2] = ["val/accuracy", "val/rewards/accuracies"];

impl ValidationCurve {
    /// Returns true for an accuracy, which says more than a loss.
    pub(super) fn is_accuracy(&self) -> bool {
        ACCURACIES.contains(&self.metric.as_str())
    }

    /// Returns what the metric did: `val acc 0.5566 → 0.9727`.
    pub(super) fn line(&self) -> String {
        let name = shown_name(&self.metric);
        match self.first.0 == self.last.0 {
            true => format!("{name} {} at step {}", four_digits(self.last.1), self.last.0),
            false => format!("{name} {} → {}", four_digits(self.first.1), four_digits(self.last.1)),
        }
    }
}

/// Returns the short name of a validation metric: `val acc` for `val-core/SOURCE/acc/mean@1`.
fn shown_name(metric: &str) -> String {
    let parts: Vec<&str> = metric.split('/').collect();
    match (parts.as_slice(), metric) {
        (_, "val/rewards/accuracies") => "val accuracy".to_owned(),
        (["val-core", .., variable, _], _) => format!("val {variable}"),
        (["val", name], _) => format!("val {name}"),
        _ => metric.to_owned(),
    }
}

/// A line of the metrics file.
#[derive(Deserialize)]
struct MetricsLine {
    step: u64,
    data: Map<String, Value>,
}

impl WatchedMetric {
    /// Returns the watched metric of a row, its value, and true if greater is better.
    pub fn value_in<'a>(&self, mut row: impl Iterator<Item = (&'a str, f64)>) -> Option<(&'a str, f64, bool)> {
        match &self.metric {
            Some(metric) => row.find(|(name, _)| name == metric).map(|(name, value)| (name, value, self.greater_is_better)),
            None => row.find_map(|(name, value)| match name {
                "val/loss" => Some((name, value, false)),
                _ => name.starts_with("val-core/").then_some((name, value, true)),
            }),
        }
    }

    /// Adds the metrics of a step; returns true if its value is the best so far. NaN never is, and of equal values the earlier
    /// one counts.
    pub(super) fn take<'a>(&self, step: u64, row: impl Iterator<Item = (&'a str, f64)>, so_far: &mut Validations) -> bool {
        let row: Vec<(&str, f64)> = row.collect();
        let watched = self.value_in(row.iter().copied());
        let followed = |name: &str| ACCURACIES.contains(&name) || watched.is_some_and(|(watched, ..)| watched == name);
        for (name, value) in row.iter().copied().filter(|(name, _)| followed(name)) {
            match so_far.curves.iter_mut().find(|curve| curve.metric == name) {
                Some(curve) => curve.last = (step, value),
                None => {
                    so_far.curves.push(ValidationCurve { metric: name.to_owned(), first: (step, value), last: (step, value) })
                }
            }
        }
        let Some((name, value, greater)) = watched else { return false };
        so_far.last = Some(value);
        let better = |best: &BestSoFar| if greater { value > best.value } else { value < best.value };
        let earlier = so_far.best.as_ref().filter(|best| best.metric == name && !best.value.is_nan());
        let is_best = !value.is_nan() && earlier.is_none_or(better);
        if is_best {
            so_far.best = Some(BestSoFar { metric: name.to_owned(), value, step });
        }
        is_best
    }

    /// Collects the results from the rows of these steps in a metrics file; other lines are ignored.
    pub(super) fn in_file(&self, metrics: &Path, steps: RangeInclusive<u64>) -> Validations {
        let mut so_far = Validations::default();
        for MetricsLine { step, data } in lines(metrics).filter_map(|line| serde_json::from_str(&line).ok()) {
            if steps.contains(&step) {
                self.take(step, data.iter().filter_map(|(name, value)| Some((name.as_str(), from_value(value)?))), &mut so_far);
            }
        }
        so_far
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_is_the_first_of_the_best_and_never_nan() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("metrics.jsonl");
        let rows = [(2, "0.8"), (4, "0.9"), (5, "\"NaN\""), (6, "0.9"), (7, "null"), (8, "\"Infinity\""), (9, "0.1")];
        let text = |(step, value): &(u64, &str)| format!("{{\"step\":{step},\"data\":{{\"a\":1,\"val-core/x\":{value}}}}}\n");
        std::fs::write(&file, rows.iter().map(text).collect::<String>() + "{\"step\":1,\"da").unwrap();
        let watched =
            |metric: Option<&str>, greater_is_better| WatchedMetric { metric: metric.map(str::to_owned), greater_is_better };
        let of = |watched: &WatchedMetric, until| watched.in_file(&file, 0..=until).best.map(|best| (best.value, best.step));
        let first = watched(None, true);
        assert_eq!([1, 2, 3, 7].map(|until| of(&first, until)), [None, Some((0.8, 2)), Some((0.8, 2)), Some((0.9, 4))]);
        assert_eq!(of(&first, 9), Some((f64::INFINITY, 8)));
        assert_eq!(of(&watched(Some("val-core/x"), false), 9), Some((0.1, 9)));
        assert_eq!(of(&watched(Some("a"), false), 9), Some((1.0, 2)));
        assert!(
            first.in_file(&file, 0..=5).last.unwrap().is_nan() && first.in_file(&dir.path().join("none"), 0..=9).last.is_none()
        );
        // An earlier version may have recorded NaN.
        let nan = BestSoFar { metric: "val-core/x".into(), value: f64::NAN, step: 0 };
        let mut so_far = Validations { best: Some(nan), ..Validations::default() };
        assert!(first.take(1, [("val-core/x", -1.0)].into_iter(), &mut so_far));
    }
}
