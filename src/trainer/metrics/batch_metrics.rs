//! The metrics of a batch (verl's `compute_data_metrics` and `compute_variance_proxy_metrics`). The names begin with `critic/`
//! even without a critic.

use std::collections::BTreeMap;

use super::groups::{equal_groups, groups_of_scores};
use crate::trainer::batch::Batch;
use crate::trainer::batch::columns::Column;
use burnish_config::schema::{ActorConfig, DataConfig};
use burnish_data::named_source;
use burnish_tracking::Metrics;

/// Turns of a response without tools: verl counts messages, here a prompt and a response.
const TURNS: f64 = 2.0;

/// Returns the number of turns of each trajectory, as verl counts them.
pub(crate) fn turns(batch: &Batch) -> Vec<f64> {
    batch.episodes.iter().map(|episode| episode.as_ref().map_or(TURNS, |episode| episode.num_turns() as f64)).collect()
}

/// Adds scores and rewards per trajectory, advantages and returns over trained tokens, and lengths per trajectory. Scores also
/// have the standard deviation, its mean within groups, and the share of groups with equal scores, as in TRL. Columns without a
/// reader are not computed and have no metrics.
pub(crate) fn of_batch(batch: &Batch, data: &DataConfig, metrics: &mut Metrics) {
    let trained = |column: &[f32]| -> Vec<f64> {
        column.iter().zip(&batch[Column::Mask]).filter(|(_, m)| **m != 0.0).map(|(x, _)| *x as f64).collect()
    };
    let scores: Vec<f64> = batch.trajectory_scores().into_iter().flatten().collect();
    spread("critic/score", &scores, metrics);
    if !scores.is_empty() {
        metrics.set("critic/score/std", variance(&scores).sqrt());
    }
    metrics.extend(equal_groups(batch).map(|share| ("reward/zero_std_ratio", share)));
    let deviations: Vec<f64> = groups_of_scores(batch).iter().map(|scores| variance(scores).sqrt()).collect();
    if !deviations.is_empty() {
        metrics.set("reward/group_std_mean", deviations.iter().sum::<f64>() / deviations.len() as f64);
    }
    if let Some(rewards) = batch.get(Column::Rewards) {
        let rewards = batch.totals(rewards).into_iter().zip(batch.scored());
        spread("critic/rewards", &rewards.filter(|(_, scored)| *scored).map(|(total, _)| total).collect::<Vec<_>>(), metrics);
    }
    of_sources(batch, metrics);
    let abstained = batch.len() - scores.len();
    metrics.set("reward/abstained_ratio", abstained as f64 / batch.len() as f64);
    for (name, column) in [("critic/advantages", Column::Advantages), ("critic/returns", Column::Returns)] {
        if let Some(values) = batch.get(column) {
            spread(name, &trained(values), metrics);
        }
    }
    let lengths = |len: &dyn Fn(usize) -> usize| -> Vec<f64> { (0..batch.len()).map(|i| len(i) as f64).collect() };
    length("response_length", &lengths(&|i| batch.tokens(i).len()), data.max_response_length, metrics);
    // 0 if no response ended by itself, as in TRL.
    let ended: Vec<f64> = (0..batch.len()).filter(|&i| !batch.truncated(i)).map(|i| batch.tokens(i).len() as f64).collect();
    spread("response_length_terminated", if ended.is_empty() { &[0.0] } else { &ended }, metrics);
    length("prompt_length", &lengths(&|i| batch.prompt_ids(i).len()), data.max_prompt_length, metrics);
    spread("num_turns", &turns(batch), metrics);
    let truncated = (0..batch.len()).filter(|&i| batch.truncated(i)).count();
    metrics.set("response/truncated_ratio", truncated as f64 / batch.len() as f64);
    let components = batch.components();
    let several = components.iter().filter(|_| components.len() > 1).map(|c| (c.name.as_str(), c.values.clone()));
    for (name, values) in several.clone() {
        let values: Vec<f64> = values.into_iter().flatten().collect();
        if values.len() > 1 {
            metrics.set(format!("reward/{name}/std"), variance(&values).sqrt());
        }
    }
    for (name, values) in batch.extras().into_iter().chain(several) {
        let values: Vec<f64> = values.into_iter().flatten().collect();
        if !values.is_empty() {
            metrics.set(format!("reward/{name}/mean"), values.iter().sum::<f64>() / values.len() as f64);
        }
    }
}

/// Adds the mean score of each data source, if there are several.
fn of_sources(batch: &Batch, metrics: &mut Metrics) {
    let mut sources: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (i, score) in batch.trajectory_scores().into_iter().enumerate() {
        sources.entry(named_source(&batch.prompt(i).data_source)).or_default().extend(score);
    }
    for (source, scores) in sources.iter().filter(|(_, scores)| sources.len() > 1 && !scores.is_empty()) {
        metrics.set(format!("critic/score/{source}/mean"), scores.iter().sum::<f64>() / scores.len() as f64);
    }
}

/// Adds values, and how much of the returns they explain, over the tokens that `mask` counts.
pub(crate) fn of_values(values: &[f32], returns: &[f32], mask: &[f32], metrics: &mut Metrics) {
    let counted = |column: &[f32]| -> Vec<f64> {
        column.iter().zip(mask).filter(|(_, m)| **m != 0.0).map(|(x, _)| f64::from(*x)).collect()
    };
    let (values, returns) = (counted(values), counted(returns));
    let errors: Vec<f64> = returns.iter().zip(&values).map(|(r, v)| r - v).collect();
    spread("critic/values", &values, metrics);
    metrics.set("critic/vf_explained_var", 1.0 - variance(&errors) / (variance(&returns) + 1e-5));
}

/// Returns the unbiased variance; 0 for fewer than two values.
pub(super) fn variance(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count.max(1.0);
    values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (count - 1.0).max(1.0)
}

/// Adds mean, maximum and minimum, if there are values.
pub(crate) fn spread(name: &str, values: &[f64], metrics: &mut Metrics) {
    if values.is_empty() {
        return;
    }
    metrics.set(format!("{name}/mean"), values.iter().sum::<f64>() / values.len() as f64);
    metrics.set(format!("{name}/max"), values.iter().copied().fold(f64::NEG_INFINITY, f64::max));
    metrics.set(format!("{name}/min"), values.iter().copied().fold(f64::INFINITY, f64::min));
}

/// Adds the metrics of lengths. `clip_ratio` is the share of the maximum length, as in verl: a response that ends exactly there
/// also counts.
fn length(name: &str, values: &[f64], max: usize, metrics: &mut Metrics) {
    spread(name, values, metrics);
    let clipped = values.iter().filter(|&&v| v >= max as f64).count();
    metrics.set(format!("{name}/clip_ratio"), clipped as f64 / values.len() as f64);
}

/// Adds the noise of the gradient: A²·W estimates the squared norm of a trajectory's gradient, with W = Σ_t (1 − 2π_t + Σπ²) and
/// A the mean of its advantages. With importance weights, power takes their mean squared, and the reported W takes each squared,
/// as in verl. `actor/grad_norm` is the norm of the mean gradient; absent if the step does not update the actor. Needs
/// `calculate_sum_pi_squared`.
pub(crate) fn variance_proxy(batch: &Batch, actor: &ActorConfig, metrics: &mut Metrics) {
    if !actor.calculate_sum_pi_squared {
        return;
    }
    let Some(grad_norm) = metrics.get("actor/grad_norm") else { return };
    let (Some(old), Some(squares)) = (batch.get(Column::OldLogProb), batch.get(Column::SumPiSquared)) else { return };
    let is_weights = batch.get(Column::RolloutIsWeights);
    let (mut power, mut a_squared, mut expected_w) = (0.0, 0.0, 0.0);
    for i in 0..batch.len() {
        let trained: Vec<usize> = batch.tokens(i).filter(|&t| batch[Column::Mask][t] != 0.0).collect();
        let sum = |f: &dyn Fn(usize) -> f64| trained.iter().map(|&t| f(t)).sum::<f64>();
        let mean = |f: &dyn Fn(usize) -> f64| sum(f) / (trained.len() as f64 + 1e-8);
        let weight = |t: usize| is_weights.map_or(1.0, |weights| f64::from(weights[t]));
        let w = |t: usize| 1.0 - 2.0 * f64::from(old[t]).exp() + f64::from(squares[t]);
        let a = mean(&|t| f64::from(batch[Column::Advantages][t]));
        let scale = if is_weights.is_some() { mean(&weight) } else { 1.0 };
        // Tokens of weight 0 are not in the gradient.
        power += scale * scale * a * a * sum(&|t| if weight(t) == 0.0 { 0.0 } else { w(t) }).max(0.0);
        a_squared += a * a;
        expected_w += sum(&|t| w(t) * weight(t) * weight(t));
    }
    let count = batch.len() as f64;
    let (signal, power) = (grad_norm * grad_norm, power / count);
    metrics.set("variance_proxy/proxy1_signal_strength", signal);
    metrics.set("variance_proxy/proxy2_total_power", power);
    metrics.set("variance_proxy/proxy3_pure_noise", ((power - signal) / (count - 1.0).max(1.0)).max(0.0));
    metrics.set("variance_proxy/expected_a_squared", a_squared / count);
    metrics.set("variance_proxy/expected_w", expected_w / count);
}
