//! Phase `testing`: the validation prompts, sampled by `rollout.val_kwargs` and scored; means per data source.

use anyhow::Result;

use super::Trainer;
use super::batch::Batch;
use crate::rollout::Sampling;
use crate::tracking::Metrics;
use crate::util::rng::Stream;

impl Trainer {
    /// `val-core/<data_source>/<acc or reward>/mean@N`, with `best@N` beside it, and the scorer's other numbers, smaller N,
    /// `worst@` and `std@` under `val-aux/`, as in verl: over the N samples of each prompt, then over prompts.
    pub(super) fn validate(&mut self) -> Result<Metrics> {
        let kwargs = &self.config.actor_rollout_ref.rollout.val_kwargs;
        let sampling = Sampling {
            temperature: if kwargs.do_sample { kwargs.temperature as f32 } else { 0.0 },
            top_k: usize::try_from(kwargs.top_k).unwrap_or(0),
            top_p: kwargs.top_p as f32,
            ..self.sampling
        };
        let n = kwargs.n;
        let prompts = self.val.clone();
        let size = self.config.data.val_batch_size.unwrap_or(prompts.len());
        let mut samples = Samples { n, values: Vec::new() };
        let mut shown = Vec::new();
        let mut lines = String::new();
        for chunk in prompts.chunks(size) {
            let mut batch = self.sample("validate", chunk.to_vec(), n, sampling, &[])?;
            self.score(&mut batch)?;
            samples.add(&batch);
            let scores = batch.trajectory_scores();
            shown.extend((0..batch.len()).map(|i| (batch.prompt(i).text.clone(), batch.texts[i].clone(), scores[i])));
            lines.push_str(&self.generations(&batch));
        }
        if let Some(folder) = &self.config.trainer.validation_data_dir {
            self.write_generations(folder.as_path(), &lines)?;
        }
        self.show(shown)?;
        Ok(samples.metrics())
    }

    /// `trainer.log_val_generations` validation samples on the console: the same ones each time.
    fn show(&self, mut samples: Vec<(String, String, Option<f64>)>) -> Result<()> {
        let most = self.config.trainer.log_val_generations;
        if most == 0 {
            return Ok(());
        }
        samples.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.cmp(&b.1)));
        Stream::new(42, "shown validation samples", &[]).shuffle(&mut samples);
        let mut table = comfy_table::Table::new();
        table.set_header(["input", "output", "score"]);
        for (input, output, score) in samples.into_iter().take(most) {
            table.add_row([input, output, score.map_or("none".to_owned(), |score| score.to_string())]);
        }
        self.progress.println(&table.to_string())
    }
}

/// Values of named variables: (data source, variable, the n samples of one prompt).
struct Samples {
    n: usize,
    values: Vec<(String, String, Vec<f64>)>,
}

impl Samples {
    fn add(&mut self, batch: &Batch) {
        let scores = batch.trajectory_scores();
        let variables = std::iter::once(("reward", &scores)).chain(batch.extras.iter().map(|(name, v)| (name.as_str(), v)));
        for (name, values) in variables {
            for (prompt, values) in batch.prompts.iter().zip(values.chunks(self.n)) {
                let values: Vec<f64> = values.iter().copied().flatten().collect();
                // Another data source's scorer may know the variable where this one's does not.
                if !values.is_empty() {
                    self.values.push((prompt.data_source.clone(), name.to_owned(), values));
                }
            }
        }
    }

    fn metrics(&self) -> Metrics {
        let mut metrics = Metrics::new();
        let mut keys: Vec<(&str, &str)> = self.values.iter().map(|(s, v, _)| (s.as_str(), v.as_str())).collect();
        keys.sort_unstable();
        keys.dedup();
        for &(source, variable) in &keys {
            let groups: Vec<&Vec<f64>> =
                self.values.iter().filter(|(s, v, _)| s == source && v == variable).map(|(_, _, values)| values).collect();
            let over_prompts = |f: &dyn Fn(&[f64]) -> f64| groups.iter().map(|g| f(g)).sum::<f64>() / groups.len() as f64;
            let core = if keys.contains(&(source, "acc")) { "acc" } else { "reward" };
            let kind = if variable == core { "val-core" } else { "val-aux" };
            metrics.set(format!("{kind}/{source}/{variable}/mean@{}", self.n), over_prompts(&mean));
            if self.n > 1 {
                metrics.set(format!("val-aux/{source}/{variable}/std@{}", self.n), over_prompts(&deviation));
            }
            for draws in draws(self.n) {
                let best = if draws == self.n { kind } else { "val-aux" };
                for (name, kind, sign) in [("best", best, 1.0), ("worst", "val-aux", -1.0)] {
                    let moment = |i: usize| over_prompts(&|values| extreme(values, draws, sign)[i]);
                    metrics.set(format!("{kind}/{source}/{variable}/{name}@{draws}/mean"), moment(0));
                    metrics.set(format!("{kind}/{source}/{variable}/{name}@{draws}/std"), moment(1));
                }
            }
        }
        metrics
    }
}

/// 2, 4, 8, … below N, and N: the sizes for which verl reports the best and the worst; none for N = 1.
fn draws(n: usize) -> Vec<usize> {
    let mut sizes: Vec<usize> = std::iter::successors(Some(2), |k| Some(k * 2)).take_while(|&k| k < n).collect();
    sizes.extend((n > 1).then_some(n));
    sizes
}

/// Mean and standard deviation of the largest (sign 1) or smallest (sign −1) of `draws` values drawn with replacement.
///
/// verl estimates them from 1,000 such draws (`bootstrap_metric`); here they are exact: the i-th smallest of N values is the
/// largest of k draws with probability (i/N)ᵏ − ((i−1)/N)ᵏ.
fn extreme(values: &[f64], draws: usize, sign: f64) -> [f64; 2] {
    let mut sorted: Vec<f64> = values.iter().map(|x| sign * x).collect();
    sorted.sort_by(f64::total_cmp);
    let below = |i: usize| (i as f64 / sorted.len() as f64).powi(draws as i32);
    let moment = |power: i32| -> f64 { sorted.iter().enumerate().map(|(i, x)| (below(i + 1) - below(i)) * x.powi(power)).sum() };
    let m = moment(1);
    [sign * m, (moment(2) - m * m).max(0.0).sqrt()]
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Population standard deviation, as numpy's default.
fn deviation(values: &[f64]) -> f64 {
    let m = mean(values);
    (values.iter().map(|x| (x - m) * (x - m)).sum::<f64>() / values.len() as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_and_worst_of_draws() {
        assert_eq!(draws(1), [0; 0]);
        assert_eq!(draws(2), [2]);
        assert_eq!(draws(12), [2, 4, 8, 12]);
        // Of two draws from {0, 1}, three outcomes in four have a 1, one in four has only ones.
        let [best, std] = extreme(&[1.0, 0.0], 2, 1.0);
        assert!((best - 0.75).abs() < 1e-12 && (std - 0.1875f64.sqrt()).abs() < 1e-12);
        assert!((extreme(&[1.0, 0.0], 2, -1.0)[0] - 0.25).abs() < 1e-12);
        assert_eq!(extreme(&[3.0, 3.0, 3.0], 3, -1.0)[0], 3.0);
    }
}
