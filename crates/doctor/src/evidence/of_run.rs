//! The evidence about one run.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::facts::Facts;
use super::metric_names;
use super::names::{self, RunLibrary};
use super::rows::MetricRow;
use crate::phase::CheckPhase;

/// Everything known about a run. Names of metrics are burnish's, which are verl's where verl has the metric.
#[derive(Debug)]
pub struct Evidence {
    /// Before the run, or with its metrics.
    pub phase: CheckPhase,
    /// The library whose settings the advice names.
    pub library: RunLibrary,
    /// Steps with their metrics, in order. A step of validation alone has a row too.
    pub rows: Vec<MetricRow>,
    /// Settings by dotted key, in the library's names.
    pub settings: BTreeMap<String, Value>,
    /// Reward functions with their weights.
    pub functions: Vec<(String, f64)>,
    /// Facts about model, template and rows.
    pub facts: Facts,
    /// Files that were read, for the first line of the output.
    pub sources: Vec<String>,
}

impl Evidence {
    /// Returns evidence that holds nothing yet.
    pub fn new(phase: CheckPhase, library: RunLibrary) -> Self {
        let (rows, settings, functions, sources) = (vec![], BTreeMap::new(), vec![], vec![]);
        Self { phase, library, rows, settings, functions, facts: Facts::default(), sources }
    }

    /// Replaces the names of settings in braces by those of the library. A name that the table lacks is a key of burnish.
    pub(crate) fn advise(&self, remedy: &str) -> String {
        names::fill(self.library, remedy)
    }

    /// Returns a setting, by the name in braces that advice uses, or by its own key.
    pub(crate) fn setting(&self, name: &str) -> Option<&Value> {
        self.settings.get(names::key(self.library, name))
    }

    /// Returns an accuracy that the score does not decide: of a named function or of validation, with at least two values. A
    /// custom function's accuracy is its score, also in validation.
    pub(crate) fn accuracy(&self) -> Option<(String, Vec<(u64, f64)>)> {
        let scores = self.series("critic/score/mean");
        let names: BTreeSet<&str> = self.rows.iter().flat_map(|row| row.values.keys()).map(String::as_str).collect();
        let is_accuracy = |name: &str| {
            let function = name.strip_prefix("reward/").and_then(|name| name.strip_suffix("/mean")).unwrap_or_default();
            ["acc", "correct"].iter().any(|word| function.to_lowercase().contains(word))
        };
        let of_training: Vec<_> =
            names.iter().filter(|name| is_accuracy(name)).map(|name| ((*name).to_owned(), self.series(name))).collect();
        if of_training.iter().any(|(_, series)| *series == scores) {
            return None;
        }
        let of_validation = names.iter().filter(|name| name.starts_with("val-core/") && name.contains("/acc/"));
        let of_validation = of_validation.map(|name| ((*name).to_owned(), self.series(name)));
        let is_share = |series: &[(u64, f64)]| series.len() > 1 && series.iter().all(|(_, value)| (0.0..=1.0).contains(value));
        of_training.into_iter().chain(of_validation).find(|(_, series)| is_share(series))
    }

    /// Returns the number of a setting.
    pub(crate) fn setting_number(&self, name: &str) -> Option<f64> {
        self.setting(name)?.as_f64()
    }

    /// Returns verl's name of a metric that the run records under this name.
    pub(crate) fn own_name(&self, name: &str) -> String {
        let has_others = self.setting("trainer.metric_names").and_then(Value::as_str) == Some("trl");
        if has_others { metric_names::own_name(name) } else { name.to_owned() }
    }

    /// Returns the values of a metric with their steps. Values that are not finite are left out.
    pub(crate) fn series(&self, name: &str) -> Vec<(u64, f64)> {
        let values = self.rows.iter().filter_map(|row| Some((row.step, *row.values.get(name)?)));
        values.filter(|(_, value)| value.is_finite()).collect()
    }

    /// Returns the values of the first of these metrics that the run has.
    pub(crate) fn first_of<'a>(&self, names: &[&'a str]) -> Option<(&'a str, Vec<(u64, f64)>)> {
        names.iter().map(|name| (*name, self.series(name))).find(|(_, series)| !series.is_empty())
    }
}
