//! The metrics that say most about a run.

use super::series::Series;

/// The first metrics; the metrics of validation follow.
const FIRST: &[&str] = &[
    "critic/score/mean",
    "train/loss",
    "train/accuracy",
    "rewards/accuracies",
    "actor/entropy",
    "actor/grad_norm",
    "train/grad_norm",
    "response_length/mean",
    "perf/throughput",
];

/// Returns the names of these metrics that one of the runs has: score, loss, size of the updates, then metrics of validation.
pub fn headline(runs: &[&Series]) -> Vec<String> {
    let names = runs.iter().flat_map(|series| series.names());
    let is_validation = |name: &&str| name.starts_with("val-core/") || name.starts_with("val/");
    let mut validation: Vec<String> = names.filter(is_validation).map(str::to_owned).collect();
    validation.sort();
    validation.dedup();
    let known = FIRST.iter().filter(|name| runs.iter().any(|series| series.last(name).is_some()));
    known.map(|name| (*name).to_owned()).chain(validation).collect()
}
