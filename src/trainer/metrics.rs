//! What a batch was like (verl's `compute_data_metrics`). The names begin with `critic/` even where there is no critic.

use super::batch::Batch;
use crate::tracking::Metrics;

/// Scores and rewards per trajectory, advantages and returns over trained tokens, lengths per trajectory.
pub fn of_batch(batch: &Batch, max_prompt_length: usize, max_response_length: usize, metrics: &mut Metrics) {
    let trained = |column: &[f32]| -> Vec<f64> {
        column.iter().zip(&batch.mask).filter(|(_, m)| **m != 0.0).map(|(x, _)| *x as f64).collect()
    };
    spread("critic/score", &batch.totals(&batch.scores), metrics);
    spread("critic/rewards", &batch.totals(&batch.rewards), metrics);
    spread("critic/advantages", &trained(&batch.advantages), metrics);
    spread("critic/returns", &trained(&batch.returns), metrics);
    let lengths = |len: &dyn Fn(usize) -> usize| -> Vec<f64> { (0..batch.len()).map(|i| len(i) as f64).collect() };
    length("response_length", &lengths(&|i| batch.tokens(i).len()), max_response_length, metrics);
    length("prompt_length", &lengths(&|i| batch.prompt(i).ids.len()), max_prompt_length, metrics);
    let truncated = (0..batch.len()).filter(|&i| batch.truncated(i)).count();
    metrics.set("response/truncated_ratio", truncated as f64 / batch.len() as f64);
    for (name, values) in &batch.extras {
        let values: Vec<f64> = values.iter().copied().flatten().collect();
        metrics.set(format!("reward/{name}/mean"), values.iter().sum::<f64>() / values.len() as f64);
    }
}

fn spread(name: &str, values: &[f64], metrics: &mut Metrics) {
    metrics.set(format!("{name}/mean"), values.iter().sum::<f64>() / values.len() as f64);
    metrics.set(format!("{name}/max"), values.iter().copied().fold(f64::NEG_INFINITY, f64::max));
    metrics.set(format!("{name}/min"), values.iter().copied().fold(f64::INFINITY, f64::min));
}

/// `clip_ratio` is the share of the greatest length, as in verl: a response that ends there by itself counts too.
fn length(name: &str, values: &[f64], most: usize, metrics: &mut Metrics) {
    spread(name, values, metrics);
    let clipped = values.iter().filter(|&&v| v >= most as f64).count();
    metrics.set(format!("{name}/clip_ratio"), clipped as f64 / values.len() as f64);
}
