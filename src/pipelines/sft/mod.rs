//! Supervised fine-tuning: `trainer sft`. The loss is −Σ log π(token) over trained tokens / their number in the whole batch, as in
//! verl, TRL and OpenRLHF.

mod rows;

use anyhow::Result;

use super::stage::{Batch, Inputs, Measured, Objective, Rows};
use crate::config::SftConfig;
use crate::data::{SftExample, Tokenizer};
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
        Ok(rows::unused_options(config))
    }

    fn read(config: &SftConfig, tokenizer: &Tokenizer, rows: &Rows) -> Result<Vec<SftExample>> {
        rows::read(config, tokenizer, rows)
    }

    /// The first token is given, all others are predicted.
    fn sequences(example: &SftExample) -> Vec<Sequence<'_>> {
        let (prompt, response) = example.ids.split_at(1);
        vec![Sequence { prompt, response }]
    }

    fn build(_config: &SftConfig, _inputs: &Inputs<SftExample>, _model: &CausalLm) -> Result<Self> {
        Ok(Self)
    }

    fn pass(&self, batch: &Batch<SftExample>, model: &CausalLm, mut gradients: Option<&mut Gradients>) -> Measured {
        let masks: Vec<&[bool]> = batch.examples.iter().map(|example| &example.loss_mask[1..]).collect();
        let trained = masks.iter().copied().flatten().filter(|&&trained| trained).count();
        let sequences: Vec<_> = batch.examples.iter().map(|example| Self::sequences(example)).collect();
        let mut loss = 0.0;
        for micro in batch.micro_batches(&sequences) {
            let of_micro: Vec<Sequence> = micro.iter().flat_map(|&i| sequences[i].iter().copied()).collect();
            // The weight of each predicted token: 1 / `trained` for trained tokens, 0 for the others.
            let weight = |&trained_token: &bool| if trained_token { 1.0 / trained as f32 } else { 0.0 };
            let weights: Vec<f32> = micro.iter().flat_map(|&i| masks[i].iter().map(weight)).collect();
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
