//! The loss of pairs.

use std::collections::BTreeMap;

use super::example::RmExample;
use crate::pipelines::stage::{Measured, StageBatch};
use burnish_algorithm::ranking::{PairScores, PairTally, RankingLoss, pair_loss};
use burnish_model::{CausalLm, Gradients, MarkedSequence, Readout};

/// The scores of pairs, by their index in the batch.
pub(super) type Pairs = BTreeMap<usize, PairScores>;

/// Passes over a slice of a batch of `count` pairs; the loss is the mean over the pairs. Both sides of a pair pass together, and
/// their common prefix passes once.
pub(super) fn pass(
    loss: &RankingLoss,
    center: f64,
    batch: &StageBatch<RmExample>,
    count: f64,
    slice: &[usize],
    model: &CausalLm,
    mut gradients: Option<&mut Gradients>,
) -> Pairs {
    let mut pairs = Pairs::new();
    for micro in batch.micro_batches(slice) {
        let sequences = batch.sequences_of(&micro);
        let last: Vec<[usize; 1]> = sequences.iter().map(|side| [side.len() - 1]).collect();
        let marked: Vec<MarkedSequence> =
            sequences.iter().zip(&last).map(|(&sequence, at)| MarkedSequence { sequence, at }).collect();
        let mut learn = |scores: &[f32]| -> Vec<f32> {
            let of_pair = |(&i, scores): (&usize, &[f32])| {
                let margin = margin(batch.examples[i]);
                let scores = PairScores { chosen: scores[0].into(), rejected: scores[1].into(), margin };
                pairs.insert(i, scores);
                let found = pair_loss(loss, scores, center);
                [found.d_chosen, found.d_rejected].map(|d| (d / count) as f32)
            };
            micro.iter().zip(scores.chunks_exact(2)).flat_map(of_pair).collect()
        };
        match gradients.as_deref_mut() {
            None => model.read(&marked, Readout::Labels, |scores| _ = learn(scores)),
            Some(gradients) => model.read_backward(&marked, Readout::Labels, gradients, learn),
        }
    }
    pairs
}

/// Returns the loss of a batch, summed in the order of its rows, so that no sum depends on slices and micro-batches. `spread`:
/// also report the spread of the scores.
pub(super) fn measured(loss: &RankingLoss, center: f64, count: f64, pairs: Pairs, spread: bool) -> Measured {
    let (mut sum, mut tally) = (0.0, PairTally::default());
    for pair in pairs.into_values() {
        sum += pair_loss(loss, pair, center).loss;
        tally.add(pair);
    }
    let spread = if spread { tally.spread() } else { Vec::new() };
    Measured { loss: sum / count, metrics: tally.metrics().into_iter().chain(spread).collect() }
}

fn margin(example: &RmExample) -> f64 {
    match example {
        RmExample::Pair(pair) => pair.margin.unwrap_or(0.0),
        RmExample::Steps(_) => 0.0,
    }
}
