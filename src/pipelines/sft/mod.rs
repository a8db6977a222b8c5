//! Supervised fine-tuning: `trainer sft`. The loss is −Σ log π(token) over trained tokens / their number in the whole batch, as in
//! verl, TRL and OpenRLHF.

mod rows;

use anyhow::Result;

pub(super) use rows::{read, unused_options};

use super::stage::{Batch, Inputs, Measured, Objective, Rows};
use crate::config::SftConfig;
use crate::data::{Document, SftExample, Tokenizer};
use crate::job::optim_choices::optim_choices;
use crate::job::unused_options::UnusedOption;
use crate::model::token_stats::TokenGrads;
use crate::model::{CausalLm, Gradients, Sequence};
use crate::tracking;
use crate::util::choice::Choice;

/// Returns every name that the registries know, for the configuration of a supervised run.
pub fn choices() -> Vec<Choice> {
    optim_choices!("optim").chain(tracking::choices()).collect()
}

/// The likelihood of the trained tokens.
pub struct Sft;

impl Objective for Sft {
    type Config = SftConfig;
    type Example = SftExample;

    fn unused_options(config: &SftConfig) -> Result<Vec<UnusedOption>> {
        Ok(unused_options(&config.data))
    }

    fn read(config: &SftConfig, tokenizer: &Tokenizer, rows: &Rows) -> Result<Vec<SftExample>> {
        read(&config.data, tokenizer, rows)
    }

    fn sequences(example: &SftExample) -> Vec<Sequence<'_>> {
        sequences(example)
    }

    fn build(_config: &SftConfig, _inputs: &Inputs<SftExample>, _model: &CausalLm) -> Result<Self> {
        Ok(Self)
    }

    fn pass(&self, batch: &Batch<SftExample>, model: &CausalLm, mut gradients: Option<&mut Gradients>) -> Measured {
        let given: Vec<Vec<f32>> = batch.examples.iter().map(|example| weights(example)).collect();
        let trained: f64 = given.iter().flatten().map(|weight| f64::from(*weight)).sum();
        let sequences: Vec<_> = batch.examples.iter().map(|example| Self::sequences(example)).collect();
        let mut loss = 0.0;
        for micro in batch.micro_batches(&sequences) {
            let of_micro: Vec<Sequence> = micro.iter().flat_map(|&i| sequences[i].iter().copied()).collect();
            let weights: Vec<f32> =
                micro.iter().flat_map(|&i| &given[i]).map(|weight| (f64::from(*weight) / trained) as f32).collect();
            let mut add = |log_prob: &[f32]| {
                loss -= log_prob.iter().zip(&weights).map(|(lp, w)| f64::from(*lp) * f64::from(*w)).sum::<f64>();
            };
            match gradients.as_deref_mut() {
                None => add(&model.token_stats(&of_micro, 1.0, None).log_prob),
                Some(gradients) => model.backward(&of_micro, 1.0, None, gradients, |stats| {
                    add(&stats.log_prob);
                    let log_prob = weights.iter().map(|w| -w).collect();
                    TokenGrads { log_prob, entropy: vec![0.0; weights.len()], full_kl: Vec::new() }
                }),
            }
        }
        Measured { loss, ..Measured::default() }
    }
}

/// The sequences of an example, one for each document, whose first token is given and whose others are predicted.
pub(super) fn sequences(example: &SftExample) -> Vec<Sequence<'_>> {
    let parts = example.documents.iter().map(Document::parts);
    parts.map(|(prompt, response, _)| Sequence { prompt, response }).collect()
}

/// The weight of every predicted token of an example.
pub(super) fn weights(example: &SftExample) -> Vec<f32> {
    example.documents.iter().flat_map(|document| document.parts().2).copied().collect()
}
