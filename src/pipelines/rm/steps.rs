//! The loss of texts with judged steps.

use std::collections::BTreeMap;

use super::example::{RmExample, StepExample};
use super::form::StepReadout;
use crate::pipelines::stage::{Measured, StageBatch};
use burnish_algorithm::ranking::{StepTally, StepTarget, step_loss};
use burnish_model::{CausalLm, Gradients, MarkedSequence};

/// The loss of every step, and true if the model judged it correctly, by the index of the text in the batch.
pub(super) type StepLosses = BTreeMap<usize, Vec<(f64, bool)>>;

/// Passes over a slice of a batch of `count` judged steps; the loss is the mean over the steps.
pub(super) fn pass(
    read: &StepReadout,
    batch: &StageBatch<RmExample>,
    count: f64,
    slice: &[usize],
    model: &CausalLm,
    mut gradients: Option<&mut Gradients>,
) -> StepLosses {
    let width = read.numbers(model);
    let mut found = StepLosses::new();
    for micro in batch.micro_batches(slice) {
        let texts: Vec<(usize, &StepExample)> = micro.iter().filter_map(|&i| Some((i, batch.examples[i].text()?))).collect();
        let marked: Vec<MarkedSequence> =
            texts.iter().map(|(_, text)| MarkedSequence { sequence: text.sequence(), at: &text.at }).collect();
        let mut steps = texts.iter().flat_map(|(i, text)| text.targets.iter().map(move |target| (*i, *target)));
        let mut learn = |numbers: &[f32]| -> Vec<f32> {
            let step = |(row, (i, target)): (&[f32], (usize, StepTarget))| {
                let (loss, d, right) = step_loss(row, target);
                found.entry(i).or_default().push((loss, right));
                d.into_iter().map(|d| (d / count) as f32).collect::<Vec<_>>()
            };
            numbers.chunks_exact(width).zip(steps.by_ref()).flat_map(step).collect()
        };
        match gradients.as_deref_mut() {
            None => model.read(&marked, read.readout(), |numbers| _ = learn(numbers)),
            Some(gradients) => model.read_backward(&marked, read.readout(), gradients, learn),
        }
    }
    found
}

/// Returns the loss of a batch, summed in the order of its rows, so that no sum depends on slices and micro-batches.
pub(super) fn measured(count: f64, steps: StepLosses) -> Measured {
    let (mut sum, mut tally) = (0.0, StepTally::default());
    for (loss, right) in steps.into_values().flatten() {
        sum += loss;
        tally.add(right);
    }
    Measured { loss: sum / count, metrics: tally.metrics().into_iter().collect() }
}
