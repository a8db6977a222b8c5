//! Ends a run whose validations no longer improve, like transformers' `EarlyStoppingCallback`.

use serde::{Deserialize, Serialize};

/// The rule that ends a run before its last step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EarlyStopping {
    /// Validations in a row without an improvement.
    pub patience: u64,
    /// Minimum size of an improvement; a smaller change does not count.
    pub threshold: f64,
}

/// The validations since the last improvement of a metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Improvement {
    pub metric: String,
    /// Value of the last improvement.
    #[serde(with = "burnish_util::json_number")]
    pub value: f64,
    /// Number of validations after it.
    pub waited: u64,
}

impl EarlyStopping {
    /// Returns the state after one more validation. NaN is not an improvement. A metric that was not followed before starts from
    /// scratch.
    pub fn follow(self, before: Option<&Improvement>, metric: &str, value: f64, greater_is_better: bool) -> Improvement {
        let metric = metric.to_owned();
        match before.filter(|before| before.metric == metric) {
            Some(before) if !before.value.is_nan() => {
                let gain = if greater_is_better { value - before.value } else { before.value - value };
                match gain > self.threshold {
                    true => Improvement { metric, value, waited: 0 },
                    false => Improvement { waited: before.waited + 1, ..before.clone() },
                }
            }
            _ => Improvement { metric, value, waited: 0 },
        }
    }

    /// Returns true if the run ends.
    pub fn stops(self, state: Option<&Improvement>) -> bool {
        state.is_some_and(|state| state.waited >= self.patience)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_stops_after_so_many_validations_without_an_improvement() {
        let stopped_after = |values: &[f64], threshold: f64, greater: bool| {
            let stopping = EarlyStopping { patience: 2, threshold };
            let mut state = None;
            values.iter().position(|&value| {
                state = Some(stopping.follow(state.as_ref(), "val/loss", value, greater));
                stopping.stops(state.as_ref())
            })
        };
        assert_eq!(stopped_after(&[5.0, 4.0, 4.0, 3.0, 3.5, 3.0, 1.0], 0.0, false), Some(5));
        assert_eq!(stopped_after(&[5.0, 4.0, 4.0, 3.0, 3.5, 2.9, 1.0], 0.0, false), None);
        assert_eq!(stopped_after(&[5.0, 4.0, 4.2, 3.2, 1.0], 1.0, false), Some(2));
        assert_eq!(stopped_after(&[0.1, 0.2, 0.2, f64::NAN, 0.9], 0.0, true), Some(3));
        assert_eq!(stopped_after(&[f64::NAN, 0.2, 0.1, 0.3, 0.3], 0.0, true), None);
    }
}
