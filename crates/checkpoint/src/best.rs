//! The best checkpoint so far, by a validation metric.

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use burnish_util::suggest::did_you_mean;

/// A step that was both validated and saved, with the value of its validation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// Name of the metric that is compared.
    pub metric: String,
    #[serde(with = "burnish_util::json_number")]
    pub value: f64,
    pub step: u64,
}

impl Best {
    /// Returns the value of `metric` in a validation's metrics.
    ///
    /// # Errors
    /// If the validation does not report a metric of this name.
    pub fn value_of<'a>(metric: &str, reported: impl Iterator<Item = (&'a str, f64)>) -> Result<f64> {
        let reported: Vec<(&str, f64)> = reported.collect();
        let Some((_, value)) = reported.iter().find(|(name, _)| *name == metric) else {
            let names: Vec<&str> = reported.iter().map(|(name, _)| *name).collect();
            let suggestion = did_you_mean(metric, names.iter().copied());
            bail!(
                "trainer.metric_for_best_model names `{metric}`, which validation does not report; it reports {}.{suggestion}",
                names.join(", ")
            );
        };
        Ok(*value)
    }

    /// Returns true if this step replaces the best one so far: it is better, or the best one was chosen by another metric. Equal
    /// values do not replace it, and NaN never does.
    pub fn replaces(&self, earlier: Option<&Self>, greater_is_better: bool) -> bool {
        match earlier {
            _ if self.value.is_nan() => false,
            // The value in a checkpoint is NaN if it could not be written.
            Some(earlier) if earlier.value.is_nan() => true,
            Some(earlier) if earlier.metric == self.metric && greater_is_better => self.value > earlier.value,
            Some(earlier) if earlier.metric == self.metric => self.value < earlier.value,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(metric: &str, value: f64) -> Best {
        Best { metric: metric.into(), value, step: 1 }
    }

    #[test]
    fn better_wins_and_equal_does_not() {
        let replaces = |new: f64, old: f64, greater| best("acc", new).replaces(Some(&best("acc", old)), greater);
        assert_eq!([replaces(2.0, 1.0, true), replaces(2.0, 1.0, false)], [true, false]);
        assert_eq!([replaces(1.0, 1.0, true), replaces(1.0, 1.0, false)], [false, false]);
        assert!(best("acc", 0.0).replaces(None, true) && best("acc", 0.0).replaces(Some(&best("loss", 9.0)), true));
        assert!(!best("acc", f64::NAN).replaces(None, true));
    }

    #[test]
    fn every_value_comes_back_from_its_file() {
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.5] {
            let text = serde_json::to_string(&best("acc", value)).unwrap();
            let back: Best = serde_json::from_str(&text).unwrap();
            assert!(back.value == value || back.value.is_nan() && value.is_nan(), "{text}");
        }
    }

    #[test]
    fn a_metric_that_is_not_reported_is_named_with_a_suggestion() {
        let reported = || [("val-core/a/acc/mean@1", 0.5)].into_iter();
        assert_eq!(Best::value_of("val-core/a/acc/mean@1", reported()).unwrap(), 0.5);
        let error = Best::value_of("val-core/a/acc/mean@2", reported()).unwrap_err().to_string();
        assert!(error.contains("Did you mean \"val-core/a/acc/mean@1\"?"), "{error}");
    }
}
