//! How the batch of a step is cut: into mini-batches, one optimizer update each, and these into micro-batches for the device.

use super::batch::Batch;
use crate::config::{MicroBatch, UpdatePlan};
use crate::model::Cut;
use crate::util::rng::Stream;

/// One optimizer update of a step.
pub struct MiniBatch {
    pub epoch: usize,
    /// Its number in the epoch.
    pub place: usize,
    pub trajectories: Vec<usize>,
}

/// The updates of a step, in order. `shuffle`: purpose and seed of the order of each epoch; `None` takes the trajectories as they
/// come.
pub fn mini_batches(plan: &UpdatePlan, trajectories: usize, shuffle: Option<(&str, u64)>, step: u64) -> Vec<MiniBatch> {
    let mut updates = Vec::with_capacity(plan.updates_per_step);
    for epoch in 0..plan.epochs {
        let mut order: Vec<usize> = (0..trajectories).collect();
        if let Some((purpose, seed)) = shuffle {
            Stream::new(seed, purpose, &[step, epoch as u64]).shuffle(&mut order);
        }
        let chunks = order.chunks(plan.mini_batch_trajectories).enumerate();
        updates.extend(chunks.map(|(place, chunk)| MiniBatch { epoch, place, trajectories: chunk.to_vec() }));
    }
    updates
}

/// How a mini-batch is cut.
pub fn micro_cut(plan: &UpdatePlan) -> Cut {
    match plan.micro_batch {
        MicroBatch::Trajectories(count) => Cut::Sequences(count),
        MicroBatch::Tokens(budget) => Cut::Tokens(budget),
    }
}

/// How a whole batch is cut for forward passes.
pub fn forward_cut(by_tokens: bool, tokens: usize, sequences: Option<usize>, batch: &Batch) -> Cut {
    if by_tokens { Cut::Tokens(tokens) } else { Cut::Sequences(sequences.unwrap_or(batch.len())) }
}
