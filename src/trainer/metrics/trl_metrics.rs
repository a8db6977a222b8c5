//! The metrics of TRL's original RLOO trainer (0.9 to 0.21) and of today's GRPO and RLOO trainers (1.9), for
//! `trainer.metric_names: trl`.
//!
//! Names and meanings are TRL's, except for its mistakes. Masked tokens count nowhere; TRL adds −1 to the entropy for each padded
//! position, and averages padding into `policy/entropy_avg` and `val/ratio`. Scores are reported before they are normalised,
//! since their mean is 0 afterwards. `eps` is not an integer. `val/ratio_var` is over tokens, not over means of micro-batches.

use super::batch_metrics::variance;
use super::groups::groups_of_scores;
use crate::trainer::batch::Batch;
use crate::trainer::batch::columns::Column;
use burnish_algorithm::rounding::settled;
use burnish_config::schema::MetricNames;
use burnish_tracking::Metrics;

/// (TRL's name, verl's name of the same value). Values without a name in verl are computed here and in `totals`.
const NAMES: &[(&str, Option<&str>)] = &[
    ("eps", None),
    ("episode", None),
    ("lr", Some("actor/lr")),
    ("loss/policy_avg", Some("actor/pg_loss")),
    ("loss/value_avg", Some("critic/vf_loss")),
    ("objective/entropy", None),
    ("objective/kl", None),
    ("objective/non_score_reward", None),
    ("objective/rlhf_reward", Some("critic/rewards/mean")),
    ("objective/scores", Some("critic/score/mean")),
    // Online DPO: the score of the best response to each prompt minus that of the worst, the responses that ended by themselves,
    // and the metrics of the pairwise loss.
    ("objective/scores_margin", None),
    ("val/contain_eos_token", None),
    ("rewards/chosen", Some("actor/rewards/chosen")),
    ("rewards/rejected", Some("actor/rewards/rejected")),
    ("rewards/margins", Some("actor/rewards/margins")),
    ("rewards/accuracies", Some("actor/rewards/accuracies")),
    ("logps/chosen", Some("actor/logps/chosen")),
    ("logps/rejected", Some("actor/logps/rejected")),
    // Newer TRL: scores with their standard deviation, and the share of prompts whose responses all have the same score.
    ("reward", Some("critic/score/mean")),
    ("reward_std", Some("critic/score/std")),
    ("frac_reward_zero_std", Some("reward/zero_std_ratio")),
    // Lengths of responses: TRL counts sampled tokens, verl all tokens. A response is terminated if the limit did not cut it,
    // also by a stop text; TRL knows only end tokens.
    ("completions/mean_length", Some("response_length/mean")),
    ("completions/min_length", Some("response_length/min")),
    ("completions/max_length", Some("response_length/max")),
    ("completions/clipped_ratio", Some("response/truncated_ratio")),
    ("completions/mean_terminated_length", Some("response_length_terminated/mean")),
    ("completions/min_terminated_length", Some("response_length_terminated/min")),
    ("completions/max_terminated_length", Some("response_length_terminated/max")),
    ("num_tokens", None),
    ("entropy", Some("actor/entropy")),
    ("clip_ratio/region_mean", Some("actor/pg_clipfrac")),
    ("policy/approxkl_avg", None),
    ("policy/clipfrac_avg", Some("actor/pg_clipfrac")),
    ("policy/entropy_avg", Some("actor/entropy")),
    // Share of clipped value updates: 0 without values, as in TRL's RLOO.
    ("val/clipfrac_avg", None),
    ("val/num_eos_tokens", None),
    ("val/ratio", None),
    ("val/ratio_var", None),
];

/// Prefix of TRL's names for the rewards of each function; verl's is `reward/`.
const REWARDS: &str = "rewards/";

/// Adds the metrics of a batch that TRL reports and verl does not. `episode`: trajectories trained on since the start of the run.
/// `tokens`: tokens of their prompts and responses.
pub(crate) fn of_batch(batch: &Batch, episode: u64, tokens: u64, metrics: &mut Metrics) {
    let count = batch.len().max(1) as f64;
    let mean = |term: &dyn Fn(usize) -> f64| {
        let trained = (0..batch[Column::Mask].len()).filter(|&t| batch[Column::Mask][t] != 0.0);
        trained.map(term).sum::<f64>() / count
    };
    let old = batch.get(Column::OldLogProb).unwrap_or(&batch[Column::SampledLogProb]);
    metrics.set("episode", episode as f64);
    metrics.set("num_tokens", tokens as f64);
    for component in batch.components() {
        let values: Vec<f64> = component.values.into_iter().flatten().collect();
        if !values.is_empty() {
            metrics.set(format!("{REWARDS}{}/mean", component.name), values.iter().sum::<f64>() / values.len() as f64);
        }
        if values.len() > 1 {
            metrics.set(format!("{REWARDS}{}/std", component.name), variance(&values).sqrt());
        }
    }
    metrics.extend(metrics.get("perf/time_per_step").map(|seconds| ("eps", count / seconds)));
    metrics.set("objective/entropy", mean(&|t| -f64::from(old[t])));
    if let Some(reference) = batch.get(Column::RefLogProb) {
        metrics.set(
            "objective/kl",
            mean(&|t| {
                let old = f64::from(old[t]);
                old - settled(old, f64::from(reference[t]), 1)
            }),
        );
    }
    metrics.set("val/clipfrac_avg", metrics.get("critic/vf_clipfrac").unwrap_or(0.0));
    let ended = (0..batch.len()).filter(|&i| !batch.truncated(i)).count() as f64;
    metrics.set("val/num_eos_tokens", ended);
    metrics.set("val/contain_eos_token", ended / count);
    if batch.has_episodes() {
        sampled_lengths(batch, metrics);
    }
    let spread =
        |scores: &Vec<f64>| scores.iter().copied().fold(f64::MIN, f64::max) - scores.iter().copied().fold(f64::MAX, f64::min);
    let spreads: Vec<f64> = groups_of_scores(batch).iter().map(spread).collect();
    if !spreads.is_empty() {
        metrics.set("objective/scores_margin", spreads.iter().sum::<f64>() / spreads.len() as f64);
    }
}

/// Adds the lengths of conversations without the text of tools and users, under TRL's names.
fn sampled_lengths(batch: &Batch, metrics: &mut Metrics) {
    let sampled = batch.sampled();
    let length = |i: usize| batch.tokens(i).filter(|&t| sampled[t]).count() as f64;
    let all: Vec<f64> = (0..batch.len()).map(length).collect();
    let mut ended: Vec<f64> = (0..batch.len()).filter(|&i| !batch.truncated(i)).map(|i| all[i]).collect();
    if ended.is_empty() {
        ended.push(0.0);
    }
    for (lengths, kind) in [(all, "length"), (ended, "terminated_length")] {
        metrics.set(format!("completions/mean_{kind}"), lengths.iter().sum::<f64>() / lengths.len().max(1) as f64);
        metrics.set(format!("completions/min_{kind}"), lengths.iter().copied().fold(f64::INFINITY, f64::min));
        metrics.set(format!("completions/max_{kind}"), lengths.iter().copied().fold(f64::NEG_INFINITY, f64::max));
    }
}

/// Returns a row of metrics under the chosen names. A metric without a name in TRL keeps verl's.
pub(crate) fn named(metrics: Metrics, names: MetricNames) -> Metrics {
    let mut row = Metrics::new();
    match names {
        MetricNames::Verl => {
            let is_own = |name: &str| !name.starts_with(REWARDS) && NAMES.iter().all(|(trl, _)| *trl != name);
            row.extend(metrics.iter().filter(|(name, _)| is_own(name)));
        }
        MetricNames::Trl => {
            // A value already under TRL's name differs from verl's.
            let number = |trl: &str, verl: Option<&str>| metrics.get(trl).or_else(|| metrics.get(verl?));
            row.extend(NAMES.iter().filter_map(|(trl, verl)| Some((*trl, number(trl, *verl)?))));
            let has_other = |name: &str| {
                let rest = name.strip_prefix("reward/");
                rest.is_some_and(|rest| metrics.get(&format!("{REWARDS}{rest}")).is_some())
            };
            let is_rest = |name: &str| !has_other(name) && NAMES.iter().all(|(trl, verl)| *trl != name && *verl != Some(name));
            row.extend(metrics.iter().filter(|(name, _)| is_rest(name)));
        }
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trainer::batch::tests::{conversations, episode, two_responses};
    use crate::trainer::learning::totals::Totals;

    #[test]
    fn what_tools_said_is_no_completion_of_trl() {
        let batch = conversations(vec![episode(&[true, false, true]), episode(&[true])]);
        let mut metrics: Metrics = [("response_length/mean", 2.0), ("response_length/max", 3.0)].into_iter().collect();
        of_batch(&batch, 2, 9, &mut metrics);
        let verl = named(metrics.clone(), MetricNames::Verl);
        assert_eq!((verl.get("response_length/mean"), verl.get("completions/mean_length")), (Some(2.0), None));
        let trl = named(metrics, MetricNames::Trl);
        assert_eq!((trl.get("completions/mean_length"), trl.get("completions/max_terminated_length")), (Some(1.5), Some(2.0)));
        assert_eq!(trl.get("response_length/mean"), None);
    }

    /// Masked tokens may have any value.
    #[test]
    fn masked_tokens_count_nowhere() {
        let mut batch = two_responses();
        batch.set(Column::Mask, vec![1.0, 1.0, 1.0, 0.0]);
        batch.set(Column::OldLogProb, vec![-1.0, -2.0, -0.5, f32::NAN]);
        batch.set(Column::RefLogProb, vec![-1.5, -2.0, -1.5, f32::NAN]);
        let mut metrics = Metrics::new();
        of_batch(&batch, 2, 9, &mut metrics);
        assert_eq!(metrics.get("objective/entropy"), Some((3.0 + 0.5) / 2.0));
        assert_eq!(metrics.get("objective/kl"), Some((0.5 + 1.0) / 2.0));
        assert_eq!(metrics.get("val/num_eos_tokens"), Some(1.0));

        let mut totals = Totals::default();
        let old = batch.get(Column::OldLogProb);
        totals.add_ratios(batch.offsets(), &batch[Column::Mask], &[-1.0, -1.0, -0.5, f32::NAN], old);
        totals.report(1, &mut metrics);
        // One of three trained tokens has the ratio e, the others 1.
        let (e, ratio) = (1f64.exp(), metrics.get("val/ratio").unwrap());
        assert!((ratio - (e + 2.0) / 3.0).abs() < 1e-12 && metrics.get("policy/approxkl_avg") == Some(0.25));
        assert!((metrics.get("val/ratio_var").unwrap() - (e - 1.0).powi(2) / 3.0).abs() < 1e-12);
    }
}
