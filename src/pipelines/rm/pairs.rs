//! The loss of a batch of pairs.

use super::example::RmExample;
use crate::algorithm::ranking::{PairScores, PairTally, RankingLoss, pair_loss};
use crate::model::{CausalLm, Gradients, Marked, Readout, Sequence};
use crate::pipelines::stage::{Batch, Measured};

/// The mean loss of the pairs of a batch. Both sides of a pair pass together, and what they begin with passes once.
pub fn pass(
    loss: &RankingLoss,
    center: f64,
    batch: &Batch<RmExample>,
    model: &CausalLm,
    mut gradients: Option<&mut Gradients>,
) -> Measured {
    let sequences: Vec<Vec<Sequence>> = batch.examples.iter().map(|example| example.sequences()).collect();
    let last: Vec<Vec<[usize; 1]>> = sequences.iter().map(|sides| sides.iter().map(|side| [side.len() - 1]).collect()).collect();
    let margins: Vec<f64> = batch.examples.iter().map(|example| margin(example)).collect();
    let count = batch.examples.len() as f64;
    let mut pairs: Vec<Option<PairScores>> = vec![None; batch.examples.len()];
    for micro in batch.micro_batches(&sequences) {
        let sides = |&i: &usize| sequences[i].iter().zip(&last[i]).map(|(&sequence, at)| Marked { sequence, at });
        let marked: Vec<Marked> = micro.iter().flat_map(sides).collect();
        let mut learn = |scores: &[f32]| -> Vec<f32> {
            let of_pair = |(&i, scores): (&usize, &[f32])| {
                let scores = PairScores { chosen: scores[0].into(), rejected: scores[1].into(), margin: margins[i] };
                pairs[i] = Some(scores);
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
    // In the order of the rows, so that no sum depends on the micro-batches.
    let (mut sum, mut tally) = (0.0, PairTally::default());
    for pair in pairs.into_iter().flatten() {
        sum += pair_loss(loss, pair, center).loss;
        tally.add(pair);
    }
    let spread = if batch.training { Vec::new() } else { tally.spread() };
    Measured { loss: sum / count, metrics: tally.metrics().into_iter().chain(spread).collect() }
}

fn margin(example: &RmExample) -> f64 {
    match example {
        RmExample::Pair(pair) => pair.margin.unwrap_or(0.0),
        RmExample::Steps(_) => 0.0,
    }
}
