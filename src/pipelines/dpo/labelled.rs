//! The loss of a batch of answers with a label.

use super::example::PreferenceExample;
use super::mismatched;
use super::reference::Reference;
use super::tokens::Tokens;
use crate::algorithm::preference::{EvaluatedRows, LabelledAnswer, RowObjective};
use crate::data::examples::Unpaired;
use crate::model::token_stats::TokenGrads;
use crate::model::{CausalLm, Gradients, Sequence, TokenStats};
use crate::pipelines::stage::{Batch, Measured};

/// A pass that gives KTO's z comes first, where it is read. Where the loss must know the whole batch and there are several
/// micro-batches, another pass without gradient follows.
pub fn pass(
    objective: &RowObjective,
    batch: &Batch<PreferenceExample>,
    reference: &Reference,
    model: &CausalLm,
    gradients: Option<&mut Gradients>,
) -> Measured {
    let references = reference.log_probs(batch, 1.0);
    let rows: Vec<&Unpaired> = batch.examples.iter().map(|example| example.labelled()).collect();
    let z = if objective.reads_mismatched() { mismatched::z(batch, reference, model) } else { 0.0 };
    let sequences: Vec<Vec<Sequence>> = batch.examples.iter().map(|example| example.sequences()).collect();
    let of = |micro: &[usize]| -> Vec<Sequence> { micro.iter().flat_map(|&i| sequences[i].iter().copied()).collect() };
    let micro_batches = batch.micro_batches(&sequences);
    let (count, mut tokens) = (rows.len(), Tokens::default());
    let mut answers: Vec<Option<LabelledAnswer>> = vec![None; count];
    let mut score = |micro: &[usize], stats: &TokenStats| -> Vec<LabelledAnswer> {
        let mut at = 0;
        let answer = |&i: &usize| {
            let answer = batch.examples[i].scored(stats, at, &references[i], 1.0, false)[0];
            at = tokens.add(batch.examples[i], stats, at);
            let answer = LabelledAnswer { answer, desirable: rows[i].label };
            answers[i] = Some(answer);
            answer
        };
        micro.iter().map(answer).collect()
    };
    let spread = |micro: &[usize], grads: &mut dyn Iterator<Item = f64>| {
        let each = micro.iter().zip(grads).flat_map(|(&i, grad)| vec![grad as f32; sequences[i][0].response.len()]);
        let log_prob: Vec<f32> = each.collect();
        TokenGrads { entropy: vec![0.0; log_prob.len()], log_prob, full_kl: Vec::new() }
    };
    let first = gradients.is_none() || objective.needs_batch() && micro_batches.len() > 1;
    let mut known = EvaluatedRows::default();
    if first {
        let mut all = vec![None; count];
        for micro in &micro_batches {
            let scored = score(micro, &model.frozen().token_stats(&of(micro), 1.0, None));
            micro.iter().zip(scored).for_each(|(&i, answer)| all[i] = Some(answer));
        }
        let all: Vec<LabelledAnswer> = all.into_iter().flatten().collect();
        known = objective.evaluate(&all, z, count);
    }
    if let Some(gradients) = gradients {
        for micro in &micro_batches {
            model.backward(&of(micro), 1.0, None, gradients, |stats| match first {
                true => spread(micro, &mut micro.iter().map(|&i| known.grads[i])),
                false => spread(micro, &mut objective.evaluate(&score(micro, stats), z, count).grads.into_iter()),
            });
        }
    }
    // In the order of the rows, so that no sum depends on the micro-batches.
    let answers: Vec<LabelledAnswer> = answers.into_iter().flatten().collect();
    let metrics = objective.metrics(&answers, z).into_iter().chain(tokens.metrics()).collect();
    Measured { loss: objective.evaluate(&answers, z, count).loss, metrics }
}
