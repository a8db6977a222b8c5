//! The loss of a batch of pairs.

use super::example::PreferenceExample;
use super::tokens::Tokens;
use crate::algorithm::preference::{AnswerGrads, AnsweredPair, Evaluated, PairCounts, PairObjective};
use crate::model::token_stats::TokenGrads;
use crate::model::{CausalLm, Gradients, Sequence, TokenStats};
use crate::pipelines::stage::{Batch, Measured};

/// Pairs as a pass sees them.
struct Pass<'a> {
    objective: &'a PairObjective,
    examples: &'a [&'a PreferenceExample],
    references: &'a [Vec<f32>],
    ld_alpha: f64,
}

/// Both sides of a pair pass together, and the prompt that they share passes once. Where the loss must know the whole batch and there
/// are several micro-batches, a pass without gradient comes first.
pub fn pass(
    objective: &PairObjective,
    batch: &Batch<PreferenceExample>,
    references: &[Vec<f32>],
    ld_alpha: f64,
    model: &CausalLm,
    gradients: Option<&mut Gradients>,
) -> Measured {
    let at = Pass { objective, examples: &batch.examples, references, ld_alpha };
    let sequences: Vec<Vec<Sequence>> = batch.examples.iter().map(|example| example.sequences()).collect();
    let of = |micro: &[usize]| -> Vec<Sequence> { micro.iter().flat_map(|&i| sequences[i].iter().copied()).collect() };
    let micro_batches = batch.micro_batches(&sequences);
    let whole = at.counts();
    let mut answers = vec![AnsweredPair::default(); batch.examples.len()];
    let mut tokens = Tokens::default();
    let mut evaluated = Evaluated::default();
    let first = gradients.is_none() || objective.needs_batch() && micro_batches.len() > 1;
    if first {
        for micro in &micro_batches {
            let stats = model.frozen().token_stats(&of(micro), 1.0, None);
            at.score(micro, &stats, &mut answers, &mut tokens);
        }
        evaluated = objective.evaluate(&answers, &whole);
    }
    if let Some(gradients) = gradients {
        for micro in &micro_batches {
            model.backward(&of(micro), 1.0, None, gradients, |stats| {
                if first {
                    let grads: Vec<_> = micro.iter().map(|&i| evaluated.grads[i]).collect();
                    return at.token_grads(micro, &grads);
                }
                at.score(micro, stats, &mut answers, &mut tokens);
                let own: Vec<AnsweredPair> = micro.iter().map(|&i| answers[i]).collect();
                at.token_grads(micro, &objective.evaluate(&own, &whole).grads)
            });
        }
        if !first {
            // In the order of the rows, so that no sum depends on the micro-batches.
            evaluated = objective.evaluate(&answers, &whole);
        }
    }
    let of_answers = objective.metrics(&answers).into_iter();
    let reported = of_answers.filter(|(name, _)| objective.compares() || !name.starts_with("rewards/"));
    let metrics = reported.chain(tokens.metrics()).collect();
    Measured { loss: evaluated.loss, metrics }
}

impl Pass<'_> {
    fn counts(&self) -> PairCounts {
        let chosen = self.examples.iter().map(|example| example.answers()[0].response.len());
        PairCounts {
            pairs: self.examples.len(),
            chosen_tokens: chosen.sum(),
            prompt_tokens: self.examples.iter().map(|example| example.prompt_tokens()).sum(),
        }
    }

    /// Reads the answers of a micro-batch from the statistics of its tokens.
    fn score(&self, micro: &[usize], stats: &TokenStats, answers: &mut [AnsweredPair], tokens: &mut Tokens) {
        let mut at = 0;
        for &i in micro {
            let example = self.examples[i];
            let scored = example.scored(stats, at, &self.references[i], self.ld_alpha, self.objective.use_weighting);
            answers[i] = [scored[0], scored[1]];
            at = tokens.add(example, stats, at);
        }
    }

    /// The gradient of every token of a micro-batch.
    fn token_grads(&self, micro: &[usize], grads: &[[AnswerGrads; 2]]) -> TokenGrads {
        let mut log_prob = Vec::new();
        for (&i, grads) in micro.iter().zip(grads) {
            let example = self.examples[i];
            let shared = example.shared();
            log_prob.extend((0..example.prompt_tokens()).map(|_| grads[0].prompt as f32));
            for (answer, grads) in example.answers().iter().zip(grads) {
                log_prob.extend((0..answer.response.len()).map(|t| grads.token(t, shared, self.ld_alpha) as f32));
            }
        }
        TokenGrads { entropy: vec![0.0; log_prob.len()], log_prob, full_kl: Vec::new() }
    }
}
