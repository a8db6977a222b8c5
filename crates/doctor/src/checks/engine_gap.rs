//! Log-probabilities of generation that differ from those of training.

use burnish_util::number::short;

use crate::check::Check;
use crate::evidence::{Evidence, ending, mean};
use crate::finding::Finding;
use crate::phase::AFTER;

pub(super) const ENGINE_GAP: Check = Check {
    name: "generation against training",
    phases: AFTER,
    reads: "`training/rollout_probs_diff_mean`, `rollout_actor_probs_pearson_corr`, `rollout_corr/*`; of TRL `sampling/*`",
    number: "the metric that is farthest from its bound, mean of the last five steps",
    threshold: "difference of probabilities above 0.05, correlation below 0.9, KL above 0.1, mean weight outside 0.5 to 2 warn",
    meaning: "The engine that generates has other weights, another template, temperature or precision than the one that trains.",
    remedy: "Check that the engine gets each update, and its temperature, top_p and precision; rollout correction bounds the rest.",
    judge,
};

/// Metrics with their lower and upper bounds.
const BOUNDS: &[(&str, f64, f64)] = &[
    ("training/rollout_probs_diff_mean", -1.0, 0.05),
    ("training/rollout_actor_probs_pearson_corr", 0.9, f64::INFINITY),
    ("rollout_corr/kl", -0.1, 0.1),
    ("rollout_corr/chi2_token", f64::NEG_INFINITY, 1.0),
    ("rollout_corr/rollout_is_mean", 0.5, 2.0),
    ("rollout_corr/rollout_is_eff_sample_size", 0.3, f64::INFINITY),
    ("sampling/sampling_logp_difference/mean", -1.0, 0.1),
    ("sampling/importance_sampling_ratio/mean", 0.5, 2.0),
];

fn judge(evidence: &Evidence) -> Finding {
    let known = BOUNDS.iter().map(|bound| (bound, evidence.series(bound.0))).filter(|(_, series)| !series.is_empty());
    let values: Vec<(&(&str, f64, f64), f64)> = known.map(|(bound, series)| (bound, mean(ending(&series, 5)))).collect();
    match values.iter().find(|((_, low, high), value)| !(*low..=*high).contains(value)) {
        Some(((name, ..), value)) => Finding::warn(*value, format!("{name} is {}", short(*value))),
        None if values.is_empty() => Finding::not_applicable("the run does not compare generation with training"),
        None => Finding::pass(values[0].1, "generation and training agree"),
    }
}
