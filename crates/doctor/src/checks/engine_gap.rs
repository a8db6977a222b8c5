//! Log-probabilities of generation that differ from those of training.

use burnish_util::number::short;
use serde_json::Value;

use crate::check::Check;
use crate::evidence::{Evidence, ending, mean};
use crate::finding::Finding;
use crate::phase::AFTER;

pub(super) const ENGINE_GAP: Check = Check {
    name: "generation against training",
    phases: AFTER,
    reads: "`training/rollout_probs_diff_mean`, also by depth, `rollout_actor_probs_pearson_corr`, `rollout_corr/*`; of TRL `sampling/*`",
    number: "the metric that is farthest from its bound, mean of the last five steps",
    threshold: "difference of probabilities above 0.05 on average or at any depth of a response, correlation below 0.9, KL above 0.1, mean weight outside 0.5 to 2 warn",
    source: "verl's page about rollout correction, tests of NeMo-RL, and MiniMax-M1 ([2506.13585](https://arxiv.org/abs/2506.13585))",
    meaning: "The engine that generates has other weights, another template, temperature or precision than the one that trains.",
    remedy: "Check that the engine gets each update, and its temperature, top_p and precision; rollout correction bounds the rest.",
    example,
    judge,
};

fn example() -> Evidence {
    Evidence::made_up(30, &[("rollout_corr/kl", |_| 0.4)])
}

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
    let depths = by_depth(evidence);
    match values.iter().find(|((_, low, high), value)| !(*low..=*high).contains(value)) {
        Some(((name, ..), value)) => {
            // Depths say where a gap is only if they show one.
            let depths = if depths.iter().any(|(_, gap)| *gap > DEPTH_BOUND) { depths } else { vec![] };
            let place = place(&depths).map_or_else(String::new, |(place, _)| format!("; {place}"));
            let finding = Finding::warn(*value, format!("{name} is {}{place}", short(*value)));
            advised(finding, &depths)
        }
        None if depths.iter().any(|(_, gap)| *gap > DEPTH_BOUND) => {
            let (bucket, gap) = depths.iter().max_by(|a, b| a.1.total_cmp(&b.1)).expect("one is above the bound");
            let place = place(&depths).map_or_else(String::new, |(place, _)| format!("; {place}"));
            let sentence = format!("probabilities differ by {} at tokens {bucket} of the responses{place}", short(*gap));
            advised(Finding::warn(*gap, sentence), &depths)
        }
        None if !depths.is_empty() && values.is_empty() => {
            let most = depths.iter().map(|(_, gap)| *gap).fold(0.0, f64::max);
            Finding::pass(most, "generation and training agree at every depth of the responses")
        }
        None if values.is_empty() => Finding::not_applicable("the run does not compare generation with training"),
        None => Finding::pass(values[0].1, "generation and training agree"),
    }
}

/// Prefix of the difference of probabilities by the depth of a token in its response, and the depths, in their order.
const BY_DEPTH: &str = "training/rollout_probs_diff_mean/";
const DEPTHS: [&str; 5] = ["0-15", "16-63", "64-255", "256-1023", "1024+"];
/// Largest difference of probabilities at a depth.
const DEPTH_BOUND: f64 = 0.05;
/// Ratio of the last to the first depth from which a gap grows.
const GROWTH: f64 = 4.0;

/// The name of a setting, and a test of its value.
type SamplingFilter = (&'static str, fn(&Value) -> bool);

/// Settings that make generation draw from another distribution than the one that training computes, by their values.
const FILTERS: &[SamplingFilter] = &[
    ("top_p", |value| value.as_f64().is_some_and(|p| p < 1.0)),
    ("top_k", |value| value.as_f64().is_some_and(|k| k > 0.0)),
    ("min_p", |value| value.as_f64().is_some_and(|p| p > 0.0)),
    ("repetition_penalty", |value| value.as_f64().is_some_and(|penalty| penalty != 1.0)),
    ("presence_penalty", |value| value.as_f64().is_some_and(|penalty| penalty != 0.0)),
    ("frequency_penalty", |value| value.as_f64().is_some_and(|penalty| penalty != 0.0)),
    ("logprobs_mode", |value| value.as_str() == Some("raw_logprobs")),
    ("logit_bias", |value| !value.is_null()),
    ("bad_words", |value| !value.is_null()),
    ("allowed_token_ids", |value| !value.is_null()),
];

fn is_filtered(evidence: &Evidence) -> bool {
    let is_set =
        |(name, is_one): &SamplingFilter| evidence.setting(&format!("actor_rollout_ref.rollout.{name}")).is_some_and(is_one);
    FILTERS.iter().any(is_set)
}

/// Returns the mean difference of the last five steps at each depth that has one; none if filters make it.
fn by_depth(evidence: &Evidence) -> Vec<(&'static str, f64)> {
    if is_filtered(evidence) {
        return Vec::new();
    }
    let of = |depth: &'static str| {
        let series = evidence.series(&format!("{BY_DEPTH}{depth}"));
        (!series.is_empty()).then(|| (depth, mean(ending(&series, 5))))
    };
    DEPTHS.into_iter().filter_map(of).collect()
}

/// Says where responses differ, and what that is a sign of; `None` with fewer than two depths.
fn place(depths: &[(&str, f64)]) -> Option<(String, &'static str)> {
    let [(first, early), .., (last, late)] = depths else { return None };
    let (early, late) = (*early, *late);
    let place = |word: &str| format!("the gap {word}: {} at tokens {first}, {} at tokens {last}", short(early), short(late));
    Some(match () {
        () if late > GROWTH * early => (
            place("grows with the depth"),
            "A gap that grows with the depth comes from the cache of keys and values, or from positions: compare long responses alone.",
        ),
        () if early > GROWTH * late => (
            place("is at the beginning"),
            "A gap at the beginning comes from the prompt: its template, a token that generation adds or training lacks.",
        ),
        () => (
            place("is the same at all depths"),
            "A gap at all depths comes from temperature, filters such as top_p, precision, or weights that the engine did not get.",
        ),
    })
}

fn advised(finding: Finding, depths: &[(&str, f64)]) -> Finding {
    match place(depths) {
        Some((_, advice)) => finding.advise(advice),
        None => finding,
    }
}
