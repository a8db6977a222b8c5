//! Passes of the loss with a teacher that has other tokens.

use std::ops::Range;

use rayon::prelude::*;

use super::example::DistillExample;
use super::loss::{DistillSums, Part};
use super::teacher::Teacher;
use super::uld::UldLoss;
use crate::pipelines::sft;
use crate::pipelines::stage::StageBatch;
use burnish_algorithm::uld::{SMALLEST, Scaled, TokenGroup};
use burnish_model::token_stats::TokenGrads;
use burnish_model::{CausalLm, DistributionLoss, Distributions, Gradients, Sequence, TokenStats};

/// A group of tokens of a micro-batch, among the predicted tokens of both models, with its share of the mean over all rows.
struct WeightedGroup {
    group: TokenGroup,
    share: f64,
}

impl UldLoss {
    /// Passes over a slice, with gradients if requested. `of_all`: the sum of the weights of the whole batch.
    pub(super) fn pass(
        &self,
        teacher: Option<&Teacher>,
        batch: &StageBatch<DistillExample>,
        of_all: f64,
        slice: &[usize],
        model: &CausalLm,
        mut gradients: Option<&mut Gradients>,
    ) -> DistillSums {
        let mut sums = DistillSums::default();
        let teacher = teacher.and_then(Teacher::model);
        let part =
            |temperature, nll: bool| Part { temperature, nll: nll.then_some(self.likelihood_weight), kd: None, bounded: false };
        let (likelihood, same) = (self.likelihood_weight > 0.0, self.student_temperature == 1.0);
        for micro in batch.micro_batches(slice) {
            let of_micro = batch.sequences_of(&micro);
            let weights = micro.iter().flat_map(|&i| sft::weights(&batch.examples[i].student));
            let weights: Vec<f64> = weights.map(|weight| f64::from(weight) / of_all).collect();
            // The losses of routers count once.
            let mut share = batch.share_of(&micro);
            if likelihood && (teacher.is_none() || !same) {
                let part = part(1.0, true);
                match gradients.as_deref_mut() {
                    None => sums.add(part, &weights, &model.token_stats(&of_micro, 1.0, None), None),
                    Some(gradients) => model.with_routers(share).backward(&of_micro, 1.0, None, gradients, |stats| {
                        sums.add(part, &weights, stats, None);
                        part.token_grads(&weights, stats, None)
                    }),
                }
                share = 0.0;
            }
            let Some(teacher) = teacher else { continue };
            let (groups, of_teacher) = grouped(batch, &micro);
            let mut loss = GroupLoss {
                uld: self,
                groups: &groups,
                teacher: &teacher.distributions(&of_teacher, self.teacher_temperature),
                part: part(self.student_temperature, likelihood && same),
                weights: &weights,
                by_log_prob: vec![0.0; weights.len()],
                value: 0.0,
                sums: &mut sums,
            };
            let rows: Vec<usize> = groups.iter().map(|one| self.merge.parts(one.group.student.clone()).0).collect();
            let (temperature, at_once) = (self.student_temperature, model.distributions_at_once(teacher));
            match gradients.as_deref_mut() {
                None => model.evaluate_distributions(&of_micro, temperature, (&rows, at_once), &mut loss),
                Some(gradients) => {
                    let model = model.with_routers(share);
                    model.backward_distributions(&of_micro, temperature, (&rows, at_once), gradients, &mut loss);
                }
            }
        }
        sums
    }
}

/// Returns the groups of some rows, and the rows in the teacher's tokens.
fn grouped<'a>(batch: &StageBatch<'a, DistillExample>, micro: &[usize]) -> (Vec<WeightedGroup>, Vec<Sequence<'a>>) {
    let (mut groups, mut sequences, mut first) = (Vec::new(), Vec::new(), [0, 0]);
    let rows = batch.examples.len() as f64;
    for &i in micro {
        let example: &'a DistillExample = batch.examples[i];
        let Some(row) = &example.teacher else { continue };
        let share = 1.0 / (row.groups.len() as f64 * rows);
        let place = |tokens: &Range<usize>, first: usize| first + tokens.start..first + tokens.end;
        groups.extend(row.groups.iter().map(|TokenGroup { student, teacher }| WeightedGroup {
            group: TokenGroup { student: place(student, first[0]), teacher: place(teacher, first[1]) },
            share,
        }));
        let sequence = row.sequence();
        first[0] += batch.sequences[i].iter().map(|own| own.response.len()).sum::<usize>();
        first[1] += sequence.response.len();
        sequences.push(sequence);
    }
    (groups, sequences)
}

/// The loss of a micro-batch.
struct GroupLoss<'a> {
    uld: &'a UldLoss,
    groups: &'a [WeightedGroup],
    teacher: &'a Distributions,
    part: Part,
    /// The weights of the tokens in the likelihood.
    weights: &'a [f64],
    /// The derivative by the log-probability of each token that is a factor of a group.
    by_log_prob: Vec<f64>,
    value: f64,
    sums: &'a mut DistillSums,
}

impl DistributionLoss for GroupLoss<'_> {
    fn slopes(&mut self, tokens: &TokenStats, rows: Range<usize>, probabilities: &[f32]) -> Vec<f32> {
        let (uld, groups) = (self.uld, &self.groups[rows]);
        let teacher_rows: Vec<usize> = groups.iter().map(|one| uld.merge.parts(one.group.teacher.clone()).0).collect();
        let of_teacher = self.teacher.probabilities(&teacher_rows);
        let [own, other] = [probabilities, &of_teacher].map(|all| all.len() / groups.len().max(1));
        let mut slopes = vec![0.0; probabilities.len()];
        let results: Vec<[f64; 2]> =
            (groups, slopes.par_chunks_mut(own), probabilities.par_chunks(own), of_teacher.par_chunks(other))
                .into_par_iter()
                .map(|(WeightedGroup { group, share }, slopes, p, q)| {
                    let student = Scaled { probs: p, factor: factor(&tokens.log_prob, uld.merge.parts(group.student.clone()).1) };
                    let of_teacher = factor(&self.teacher.tokens.log_prob, uld.merge.parts(group.teacher.clone()).1);
                    let value = uld.distance.of(student, Scaled { probs: q, factor: of_teacher }, slopes);
                    let by_factor: f64 = slopes.iter().zip(p).map(|(slope, p)| f64::from(*slope) * f64::from(*p)).sum();
                    let weight = uld.distance_weight * share;
                    slopes.iter_mut().for_each(|slope| *slope = (f64::from(*slope) * student.factor * weight) as f32);
                    [share * value, weight * by_factor * student.factor]
                })
                .collect();
        for ([value, by_factor], WeightedGroup { group, .. }) in results.into_iter().zip(groups) {
            self.value += value;
            for token in uld.merge.parts(group.student.clone()).1 {
                if f64::from(tokens.log_prob[token]).exp() >= SMALLEST {
                    self.by_log_prob[token] += by_factor;
                }
            }
        }
        slopes
    }

    fn token_grads(&mut self, tokens: &TokenStats) -> TokenGrads {
        self.sums.add(self.part, self.weights, tokens, None);
        self.sums.add_distance(self.uld.distance_weight, self.value);
        let mut grads = self.part.token_grads(self.weights, tokens, None);
        grads.log_prob.iter_mut().zip(&self.by_log_prob).for_each(|(grad, of_factor)| *grad += *of_factor as f32);
        grads
    }
}

/// Returns the product of the probabilities of some tokens, each at least [`SMALLEST`].
fn factor(log_probs: &[f32], tokens: Range<usize>) -> f64 {
    log_probs[tokens].iter().map(|log| f64::from(*log).exp().max(SMALLEST)).product()
}
