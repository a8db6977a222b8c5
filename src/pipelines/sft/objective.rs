//! The objective of supervised fine-tuning.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::example::{total_weight, weights};
use super::rows;
use crate::job::memory_estimate::MemoryEstimate;
use crate::job::unused_options::UnusedOption;
use crate::pipelines::stage::{self, Measured, Objective, RowFiles, StageBatch, StageInputs};
use burnish_algorithm::token_loss::{self, TokenLoss};
use burnish_config::SftConfig;
use burnish_config::schema::SftAlgorithmConfig;
use burnish_data::{SftExample, Tokenizer};
use burnish_distributed::Ranks;
use burnish_model::token_stats::{TokenGrads, TokenStats};
use burnish_model::{CausalLm, ComparisonTarget, EmbeddingNoise, Gradients, RouterStats};
use burnish_registry::Choice;
use burnish_tracking::Metrics;

/// Returns every name in the registries, for the configuration of a supervised run.
pub fn choices() -> Vec<Choice> {
    stage::choices(token_loss::choices("algorithm.loss_type"))
}

/// The likelihood of the trained tokens.
pub struct Sft {
    loss: &'static TokenLoss,
    label_smoothing: f64,
    neftune_noise_alpha: Option<f64>,
    seed: u64,
}

impl Objective for Sft {
    type Config = SftConfig;
    type Example = SftExample;
    /// The sum of the weights of all tokens.
    type BatchTotals = f64;
    type SliceResult = SftSums;

    fn unused_options(config: &SftConfig) -> Result<Vec<UnusedOption>> {
        Ok(rows::unused_options(&config.data))
    }

    fn draws(config: &SftConfig) -> Result<bool> {
        Ok(config.algorithm.neftune_noise_alpha.is_some())
    }

    fn read(config: &SftConfig, tokenizer: &Tokenizer, rows: &RowFiles) -> Result<Vec<SftExample>> {
        rows::read(&config.data, tokenizer, rows)
    }

    fn build(config: &SftConfig, _inputs: &StageInputs<SftExample>, _model: &CausalLm, _ranks: &Ranks) -> Result<Self> {
        let loss = token_loss::find(&config.algorithm.loss_type).context("unknown algorithm.loss_type")?;
        let SftAlgorithmConfig { loss_type: _, label_smoothing, neftune_noise_alpha } = config.algorithm;
        Ok(Self { loss, label_smoothing, neftune_noise_alpha, seed: config.trainer.seed })
    }

    fn memory(config: &SftConfig, memory: &mut MemoryEstimate) -> Result<()> {
        if config.algorithm.label_smoothing == 0.0 {
            memory.by_token();
        }
        Ok(())
    }

    fn batch_totals(&self, batch: &StageBatch<SftExample>, _model: &CausalLm, _ranks: &Ranks) -> f64 {
        total_weight(&batch.examples)
    }

    fn pass(
        &self,
        batch: &StageBatch<SftExample>,
        of_all: &f64,
        slice: &[usize],
        model: &CausalLm,
        mut gradients: Option<&mut Gradients>,
    ) -> SftSums {
        let mut sums = SftSums::default();
        let smoothed = (self.label_smoothing > 0.0).then_some(ComparisonTarget::Uniform);
        for micro in batch.micro_batches(slice) {
            let of_micro = batch.sequences_of(&micro);
            let weights: Vec<f32> = micro.iter().flat_map(|&i| weights(batch.examples[i])).collect();
            match gradients.as_deref_mut() {
                None => _ = self.add(&mut sums, &model.token_stats(&of_micro, 1.0, smoothed), &weights, *of_all),
                Some(gradients) => {
                    let noisy = self.noise(batch, &micro).map(|noise| model.with_noise(noise));
                    let model = noisy.as_ref().unwrap_or(model).with_routers(batch.share_of(&micro));
                    model.backward_by_token(&of_micro, smoothed, gradients, |tokens, stats| {
                        self.add(&mut sums, stats, &weights[tokens], *of_all)
                    });
                    sums.add_routers(model.router_stats().as_ref());
                }
            }
        }
        sums
    }

    fn measured(&self, _batch: &StageBatch<SftExample>, of_all: f64, results: Vec<SftSums>) -> Measured {
        results.into_iter().reduce(SftSums::and).unwrap_or_default().measured(of_all)
    }
}

impl Sft {
    /// Returns the noise on the embedded tokens of a micro-batch, from one random stream for each document and step.
    fn noise(&self, batch: &StageBatch<SftExample>, micro: &[usize]) -> Option<EmbeddingNoise> {
        let documents = |&i: &usize| (0..batch.examples[i].documents.len()).map(move |document| (i, document));
        let keys = micro.iter().flat_map(documents).map(|(i, document)| [batch.rows[i] as u64, document as u64]).collect();
        self.neftune_noise_alpha.map(|alpha| EmbeddingNoise { alpha, seed: self.seed, step: batch.step, keys })
    }

    /// Adds some tokens to the sums, and returns the gradient of the batch's loss by their statistics. `of_all`: the sum of the
    /// weights of the whole batch.
    ///
    /// With label smoothing ε the loss of a token is (1 − ε)·loss + ε·mean_v(−log π_v) over the vocabulary, as in transformers.
    fn add(&self, sums: &mut SftSums, stats: &TokenStats, weights: &[f32], of_all: f64) -> TokenGrads {
        let zeros = || vec![0.0; weights.len()];
        let (smoothing, mut grads) =
            (self.label_smoothing, TokenGrads { log_prob: zeros(), entropy: zeros(), ..TokenGrads::default() });
        if smoothing > 0.0 {
            grads.full_kl = zeros();
        }
        for (i, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight != 0.0) {
            let (value, slope) = (self.loss.loss_and_slope)(f64::from(stats.log_prob[i]));
            let share = f64::from(*weight) / of_all;
            sums.loss += f64::from(*weight) * (1.0 - smoothing) * value;
            if smoothing > 0.0 {
                sums.loss += f64::from(*weight) * smoothing * f64::from(stats.full_kl[i]);
                grads.full_kl[i] = (share * smoothing) as f32;
            }
            grads.log_prob[i] = (share * (1.0 - smoothing) * slope) as f32;
            sums.entropy += f64::from(stats.entropy[i]);
            sums.right += usize::from(stats.is_top1[i]);
            sums.tokens += 1;
        }
        grads
    }
}

/// Sums over the trained tokens of a slice.
#[derive(Default, Serialize, Deserialize)]
pub struct SftSums {
    /// Σ weight · loss.
    loss: f64,
    entropy: f64,
    right: usize,
    tokens: usize,
    /// Means over the passes of mixtures of experts, by name.
    routers: BTreeMap<String, f64>,
}

impl SftSums {
    fn add_routers(&mut self, stats: Option<&RouterStats>) {
        for (name, value) in stats.iter().flat_map(|stats| stats.named()) {
            *self.routers.entry(name.to_owned()).or_default() += value;
        }
    }

    /// Adds the sums of both.
    fn and(self, other: Self) -> Self {
        let mut routers = self.routers;
        for (name, value) in other.routers {
            *routers.entry(name).or_default() += value;
        }
        Self {
            routers,
            loss: self.loss + other.loss,
            entropy: self.entropy + other.entropy,
            right: self.right + other.right,
            tokens: self.tokens + other.tokens,
        }
    }

    /// Returns the means over the batch.
    fn measured(self, of_all: f64) -> Measured {
        let tokens = self.tokens as f64;
        let metrics =
            [("entropy", self.entropy / tokens), ("mean_token_accuracy", self.right as f64 / tokens), ("trained_tokens", tokens)];
        let metrics = metrics.map(|(name, value)| (name.to_owned(), value)).into_iter().chain(self.routers);
        Measured { loss: self.loss / of_all, metrics: metrics.collect::<Metrics>() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipelines::stage::cuts;
    use burnish_data::Document;

    #[test]
    fn neither_ranks_nor_slices_change_what_is_measured() {
        let example = |row: u32| {
            let length = 4 + 3 * row;
            let weights = (0..length).map(|t| if t % 3 == 0 { 0.0 } else { 1.0 + t as f32 / 7.0 }).collect();
            SftExample::single(Document { ids: (0..length).map(|t| 3 + (31 * row + 7 * t) % 250).collect(), weights })
        };
        let examples: Vec<SftExample> = (0..4).map(example).collect();
        for label_smoothing in [0.0, 0.1] {
            let loss = token_loss::find("nll").unwrap();
            cuts::check(&Sft { loss, label_smoothing, neftune_noise_alpha: Some(5.0), seed: 1 }, &examples);
        }
    }
}
