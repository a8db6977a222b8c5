//! A batch of a stage, and what a pass over it gives.

use crate::model::{Cut, Sequence};
use crate::tracking::Metrics;

/// The examples of one optimizer step, or of a validation.
pub struct Batch<'a, E> {
    pub examples: Vec<&'a E>,
    /// The position of each example among those of its files, in the order of `examples`.
    pub rows: Vec<usize>,
    /// True for a step, false for a validation.
    pub training: bool,
    /// The step, or the one after which is validated.
    pub step: u64,
    pub cut: Cut,
}

/// The result of a pass over a batch.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    pub loss: f64,
    /// What else is known of the batch, by TRL's names: a step reports them behind `train/`, a validation behind `val/`.
    pub metrics: Metrics,
}

impl<E> Batch<'_, E> {
    /// The micro-batches, as indices of `examples`; an example is never split. `sequences`: of every example.
    pub fn micro_batches(&self, sequences: &[Vec<Sequence>]) -> Vec<Vec<usize>> {
        self.cut.micro_batches_of(sequences)
    }
}
