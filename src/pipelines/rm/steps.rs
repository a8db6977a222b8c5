//! The loss of a batch of texts with judged steps.

use super::example::{RmExample, StepExample};
use super::form::StepReadout;
use crate::algorithm::ranking::{StepTally, StepTarget, step_loss};
use crate::model::{CausalLm, Gradients, Marked, Sequence};
use crate::pipelines::stage::{Batch, Measured};

/// The mean loss of the judged steps of a batch.
pub fn pass(read: &StepReadout, batch: &Batch<RmExample>, model: &CausalLm, mut gradients: Option<&mut Gradients>) -> Measured {
    let texts: Vec<&StepExample> = batch.examples.iter().filter_map(|example| example.text()).collect();
    let sequences: Vec<Vec<Sequence>> = texts.iter().map(|text| vec![text.sequence()]).collect();
    let width = read.numbers(model);
    let count = texts.iter().map(|text| text.at.len()).sum::<usize>() as f64;
    // The loss of every step, and whether it was judged right.
    let mut found: Vec<Vec<(f64, bool)>> = vec![Vec::new(); texts.len()];
    for micro in batch.micro_batches(&sequences) {
        let marked: Vec<Marked> = micro.iter().map(|&i| Marked { sequence: texts[i].sequence(), at: &texts[i].at }).collect();
        let steps = |&i: &usize| texts[i].targets.iter().map(move |target| (i, *target));
        let mut steps = micro.iter().flat_map(steps);
        let mut learn = |numbers: &[f32]| -> Vec<f32> {
            let step = |(row, (i, target)): (&[f32], (usize, StepTarget))| {
                let (loss, d, right) = step_loss(row, target);
                found[i].push((loss, right));
                d.into_iter().map(|d| (d / count) as f32).collect::<Vec<_>>()
            };
            numbers.chunks_exact(width).zip(steps.by_ref()).flat_map(step).collect()
        };
        match gradients.as_deref_mut() {
            None => model.read(&marked, read.readout(), |numbers| _ = learn(numbers)),
            Some(gradients) => model.read_backward(&marked, read.readout(), gradients, learn),
        }
    }
    // In the order of the rows, so that no sum depends on the micro-batches.
    let (mut sum, mut tally) = (0.0, StepTally::default());
    for (loss, right) in found.into_iter().flatten() {
        sum += loss;
        tally.add(right);
    }
    Measured { loss: sum / count, metrics: tally.metrics().into_iter().collect() }
}
