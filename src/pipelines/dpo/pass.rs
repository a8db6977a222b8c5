//! The passes over a batch: their facts about the whole batch, their results for a slice, and the loss and metrics.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::evaluate::counts;
use super::example::PreferenceExample;
use super::loss::Loss;
use super::mismatched;
use super::reference::Reference;
use super::tokens::Tokens;
use crate::pipelines::stage::{Measured, StageBatch};
use burnish_algorithm::preference::{Answer, AnswerGrads, PairCounts};
use burnish_distributed::Ranks;
use burnish_model::token_stats::TokenGrads;
use burnish_model::{CausalLm, Gradients, TokenStats};

/// The inputs of a pass other than the batch.
pub(crate) struct Passes {
    pub loss: Loss,
    pub reference: Reference,
    pub ld_alpha: f64,
}

/// Facts about the whole batch that a pass over a slice needs.
pub struct BatchFacts {
    counts: PairCounts,
    /// KTO's z, if the loss reads it.
    z: f64,
    ahead: Option<Ahead>,
}

/// The result of a preliminary pass without gradient, for a loss that needs all responses when no micro-batch has all of them.
struct Ahead {
    results: DpoSliceResult,
    /// The gradients of every row.
    grads: Vec<Vec<AnswerGrads>>,
}

/// The result of a pass over a slice.
#[derive(Default, Serialize, Deserialize)]
pub struct DpoSliceResult {
    /// The statistics of the responses of each row, by its index in the batch: two for a pair, or one.
    answers: BTreeMap<usize, Vec<Answer>>,
    tokens: Tokens,
}

impl DpoSliceResult {
    /// Joins the results of the slices of a batch.
    fn joined(slices: Vec<Self>) -> Self {
        let tokens = slices.iter().map(|slice| slice.tokens).reduce(Tokens::and).unwrap_or_default();
        Self { answers: slices.into_iter().flat_map(|slice| slice.answers).collect(), tokens }
    }

    /// Returns the statistics of the responses in the order of the rows, so that no sum depends on slices and micro-batches.
    fn answers(&self) -> Vec<Vec<Answer>> {
        self.answers.values().cloned().collect()
    }
}

impl Passes {
    /// Runs the preliminary passes without gradient. Collective.
    pub(super) fn batch_totals(&self, batch: &StageBatch<PreferenceExample>, model: &CausalLm, ranks: &Ranks) -> BatchFacts {
        let reads_z = self.loss.reads_mismatched();
        let z = if reads_z { mismatched::z(batch, &self.reference, model, ranks) } else { 0.0 };
        let batch_totals = BatchFacts { counts: counts(&batch.examples), z, ahead: None };
        if !batch.training || !self.loss.needs_batch() || batch.is_one_micro_batch() {
            return batch_totals;
        }
        let results =
            DpoSliceResult::joined(batch.over_slices(ranks, |slice| self.pass(batch, &batch_totals, slice, model, None)));
        let grads = self.loss.evaluate(&batch.examples, &results.answers(), &batch_totals.counts, z).grads;
        BatchFacts { ahead: Some(Ahead { results, grads }), ..batch_totals }
    }

    /// Passes over a slice. All responses of a row pass together, and their shared prompt passes once.
    pub(super) fn pass(
        &self,
        batch: &StageBatch<PreferenceExample>,
        batch_totals: &BatchFacts,
        slice: &[usize],
        model: &CausalLm,
        mut gradients: Option<&mut Gradients>,
    ) -> DpoSliceResult {
        let mut results = DpoSliceResult::default();
        let goes_again = gradients.is_some() && batch_totals.ahead.is_some();
        let reference = |&i: &usize| (i, self.reference.log_probs(batch, i, self.ld_alpha));
        let references = slice.iter().filter(|_| !goes_again).map(reference).collect();
        for micro in batch.micro_batches(slice) {
            let sequences = batch.sequences_of(&micro);
            let share = batch.share_of(&micro);
            match (gradients.as_deref_mut(), &batch_totals.ahead) {
                (None, _) => {
                    let stats = model.frozen().token_stats(&sequences, 1.0, None);
                    self.score(batch, &micro, &stats, &references, &mut results);
                }
                (Some(gradients), Some(ahead)) => model.with_routers(share).backward(&sequences, 1.0, None, gradients, |_| {
                    self.token_grads(batch, &micro, micro.iter().map(|&i| ahead.grads[i].as_slice()))
                }),
                (Some(gradients), None) => model.with_routers(share).backward(&sequences, 1.0, None, gradients, |stats| {
                    let answers = self.score(batch, &micro, stats, &references, &mut results);
                    let rows: Vec<&PreferenceExample> = micro.iter().map(|&i| batch.examples[i]).collect();
                    let grads = self.loss.evaluate(&rows, &answers, &batch_totals.counts, batch_totals.z).grads;
                    self.token_grads(batch, &micro, grads.iter().map(Vec::as_slice))
                }),
            }
        }
        results
    }

    /// Returns the loss of a batch and its metrics.
    pub(super) fn measured(
        &self,
        batch: &StageBatch<PreferenceExample>,
        batch_totals: BatchFacts,
        results: Vec<DpoSliceResult>,
    ) -> Measured {
        let BatchFacts { counts, z, ahead } = batch_totals;
        let results = ahead.map_or_else(|| DpoSliceResult::joined(results), |ahead| ahead.results);
        let answers = results.answers();
        let metrics = self.loss.metrics(&batch.examples, &answers, z).into_iter().chain(results.tokens.metrics()).collect();
        Measured { loss: self.loss.evaluate(&batch.examples, &answers, &counts, z).loss, metrics }
    }

    /// Computes the statistics of a micro-batch's responses from the statistics of its tokens.
    fn score(
        &self,
        batch: &StageBatch<PreferenceExample>,
        micro: &[usize],
        stats: &TokenStats,
        references: &BTreeMap<usize, Vec<f32>>,
        results: &mut DpoSliceResult,
    ) -> Vec<Vec<Answer>> {
        let mut at = 0;
        let answers = |&i: &usize| {
            let row = batch.examples[i];
            let answers = row.scored(stats, at, &references[&i], self.ld_alpha, self.loss.weighs());
            at = results.tokens.add(row, stats, at);
            results.answers.insert(i, answers.clone());
            answers
        };
        micro.iter().map(answers).collect()
    }

    /// Returns the gradient of every token of a micro-batch. `grads`: the gradients of the responses of each row.
    fn token_grads<'a>(
        &self,
        batch: &StageBatch<PreferenceExample>,
        micro: &[usize],
        grads: impl Iterator<Item = &'a [AnswerGrads]>,
    ) -> TokenGrads {
        let mut log_prob = Vec::new();
        for (&i, grads) in micro.iter().zip(grads) {
            let row = batch.examples[i];
            let shared = row.shared();
            log_prob.extend((0..row.prompt_tokens()).map(|_| grads[0].prompt as f32));
            for (answer, grads) in row.answers().iter().zip(grads) {
                log_prob.extend((0..answer.response.len()).map(|t| grads.token(t, shared, self.ld_alpha) as f32));
            }
        }
        TokenGrads { entropy: vec![0.0; log_prob.len()], log_prob, full_kl: Vec::new() }
    }
}
