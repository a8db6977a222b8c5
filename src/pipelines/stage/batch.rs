//! A batch of a stage, and the result of a pass over it.

use serde::Serialize;
use serde::de::DeserializeOwned;

use burnish_distributed::Ranks;
use burnish_model::{Cut, Sequence};
use burnish_tracking::Metrics;

/// The examples of one optimizer step, or of a validation: every rank has all of them.
pub struct StageBatch<'a, E> {
    pub examples: Vec<&'a E>,
    /// The sequences of each example.
    pub sequences: Vec<Vec<Sequence<'a>>>,
    /// The position of each example among the examples of its files, in the order of `examples`.
    pub rows: Vec<usize>,
    /// True for a step, false for a validation.
    pub training: bool,
    /// The step, or the step before the validation.
    pub step: u64,
    pub cut: Cut,
    /// Indices of `examples`: the slices of the batch, each slice belongs to one rank.
    pub slices: Vec<Vec<usize>>,
}

/// The result of a pass over a batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    pub loss: f64,
    /// Further metrics of the batch, under TRL's names. A step reports them under `train/`, a validation under `val/`.
    pub metrics: Metrics,
}

impl<'a, E> StageBatch<'a, E> {
    /// Returns the micro-batches of a slice, as indices of `examples`; an example is never split.
    pub fn micro_batches(&self, slice: &[usize]) -> Vec<Vec<usize>> {
        self.cut.micro_batches_within(&self.sequences, slice)
    }

    /// Returns the sequences of some examples, one after another.
    pub(crate) fn sequences_of(&self, examples: &[usize]) -> Vec<Sequence<'a>> {
        examples.iter().flat_map(|&i| self.sequences[i].iter().copied()).collect()
    }

    /// Returns the part of the batch's tokens that some examples have.
    pub(crate) fn share_of(&self, examples: &[usize]) -> f64 {
        let tokens = |sequences: &[Sequence]| sequences.iter().map(Sequence::len).sum::<usize>() as f64;
        let all: f64 = self.sequences.iter().map(|of_example| tokens(of_example)).sum();
        tokens(&self.sequences_of(examples)) / all.max(1.0)
    }

    /// Returns true if a single micro-batch has the whole batch.
    pub(crate) fn is_one_micro_batch(&self) -> bool {
        self.slices.iter().map(|slice| self.micro_batches(slice).len()).sum::<usize>() == 1
    }

    /// Runs `work` on the slices of this rank, and returns the results of all slices of all ranks, in their order. Collective.
    pub(crate) fn over_slices<T>(&self, ranks: &Ranks, mut work: impl FnMut(&[usize]) -> T) -> Vec<T>
    where
        T: Serialize + DeserializeOwned,
    {
        let own = ranks.local_slices().map(|index| {
            let results = work(&self.slices[index]);
            ranks.beat();
            results
        });
        ranks.concat(own.collect())
    }
}
