//! Cuts the batch of a step into mini-batches, one optimizer update each, and these into micro-batches for the device.

use std::collections::BTreeSet;

use crate::trainer::batch::Batch;
use burnish_config::{MicroBatch, UpdatePlan};
use burnish_model::{Cut, Sequence};
use burnish_util::rng::Stream;

/// One optimizer update of a step.
pub(super) struct MiniBatch {
    pub epoch: usize,
    /// Its index in the epoch.
    pub place: usize,
    pub trajectories: Vec<usize>,
    /// Number of trajectories before untrained ones were dropped: the divisor of means over responses.
    pub size: usize,
    /// Number of prompts before untrained trajectories were dropped: the divisor of means over prompts.
    pub prompts: usize,
}

/// Returns the updates of a step, in order. `shuffle`: purpose and seed of the order of each epoch; `None` keeps the order. Drops
/// trajectories without a trained token in `mask`, since a nonfinite value in them would spoil the others; keeps all if none
/// would remain.
pub(super) fn mini_batches(
    plan: &UpdatePlan,
    batch: &Batch,
    mask: &[f32],
    shuffle: Option<(&str, u64)>,
    step: u64,
) -> Vec<MiniBatch> {
    let is_trained = |&i: &usize| mask[batch.tokens(i)].iter().any(|&m| m != 0.0);
    let mut updates = Vec::new();
    for epoch in 0..plan.epochs {
        let mut order: Vec<usize> = (0..batch.len()).collect();
        if let Some((purpose, seed)) = shuffle {
            Stream::new(seed, purpose, &[step, epoch as u64]).shuffle(&mut order);
        }
        let chunks = order.chunks(plan.mini_batch_trajectories).enumerate();
        updates.extend(chunks.map(|(place, chunk)| {
            let trained: Vec<usize> = chunk.iter().copied().filter(is_trained).collect();
            let trajectories = if trained.is_empty() { chunk.to_vec() } else { trained };
            let prompts = chunk.iter().map(|&i| batch.group[i]).collect::<BTreeSet<_>>().len();
            MiniBatch { epoch, place, trajectories, size: chunk.len(), prompts }
        }));
    }
    updates
}

/// Returns the micro-batches of a slice of a mini-batch with these `sequences`.
pub(super) fn micro_batches(plan: &UpdatePlan, sequences: &[Sequence], slice: &[usize]) -> Vec<Vec<usize>> {
    let cut = match plan.micro_batch {
        MicroBatch::Trajectories(count) => Cut::Sequences(count),
        MicroBatch::Tokens(budget) => Cut::Tokens(budget),
    };
    cut_slice(cut, sequences, slice)
}

/// Returns the micro-batches of a slice of these `sequences`.
pub(crate) fn cut_slice(cut: Cut, sequences: &[Sequence], slice: &[usize]) -> Vec<Vec<usize>> {
    let alone: Vec<&[Sequence]> = sequences.iter().map(std::slice::from_ref).collect();
    cut.micro_batches_within(&alone, slice)
}

/// Returns the tokens of each sequence.
pub(super) fn lengths(sequences: &[Sequence]) -> Vec<usize> {
    sequences.iter().map(Sequence::len).collect()
}

/// Returns how a whole batch is cut for forward passes.
pub(crate) fn forward_cut(by_tokens: bool, tokens: usize, sequences: Option<usize>, batch: &Batch) -> Cut {
    if by_tokens { Cut::Tokens(tokens) } else { Cut::Sequences(sequences.unwrap_or(batch.len())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trainer::batch::tests::two_responses;

    #[test]
    fn what_trains_nothing_is_left_out_and_every_epoch_has_the_rest() {
        let batch = two_responses();
        let plan = UpdatePlan {
            mini_batch_trajectories: 2,
            mini_batches: 1,
            micro_batch: MicroBatch::Trajectories(1),
            epochs: 2,
            updates_per_step: 2,
        };
        let cut = |mask: &[f32], shuffle| {
            let mini_batches = mini_batches(&plan, &batch, mask, shuffle, 1);
            assert!(mini_batches.iter().all(|mini| mini.size == 2), "what is left out counts");
            mini_batches.into_iter().map(|mini| mini.trajectories).collect::<Vec<_>>()
        };
        assert_eq!(cut(&[1.0, 0.0, 0.0, 1.0], None), [vec![0, 1], vec![0, 1]]);
        assert_eq!(cut(&[0.0, 0.0, 0.0, 1.0], None), [vec![1], vec![1]]);
        assert_eq!(cut(&[0.0; 4], None), [vec![0, 1], vec![0, 1]]);
        let shuffled = cut(&[1.0; 4], Some(("order", 1)));
        assert!(shuffled.iter().all(|order| order.contains(&0) && order.contains(&1)));
    }
}
