//! Gradients of a mini-batch: each slice is summed by itself, and then all slices are added on one tree.

use serde::Serialize;
use serde::de::DeserializeOwned;

use burnish_distributed::Ranks;
use burnish_distributed::tree::{Add, Sum};
use burnish_model::Gradients;

/// Sum of the gradients of this rank's slices, as far as the tree allows.
pub struct GradientSum {
    /// Slices of all ranks.
    pub(super) slices: usize,
    pub(super) sum: Sum<Slice>,
}

impl GradientSum {
    /// Runs `work` on this rank's `slices` of a mini-batch ([`Slices::cut`](burnish_distributed::Slices::cut)): `work` adds the
    /// gradients of a slice and returns other results. Returns the results of all slices of all ranks, in their order.
    /// Collective.
    pub fn over<T: Serialize + DeserializeOwned>(
        ranks: &Ranks,
        slices: &[Vec<usize>],
        mut work: impl FnMut(&[usize], &mut Gradients) -> T,
    ) -> (Self, Vec<T>) {
        let mut sum = Sum::new(slices.len());
        let results = ranks.local_slices().map(|index| {
            let mut gradients = Gradients::default();
            let found = work(&slices[index], &mut gradients);
            ranks.beat();
            sum.push_leaf(index, Slice(gradients));
            found
        });
        let results = results.collect();
        (Self { slices: slices.len(), sum }, ranks.concat(results))
    }

    /// Returns the sum over all slices, if this rank computed all of them.
    pub fn whole(&self) -> Option<&Gradients> {
        self.sum.whole().map(|slice| &slice.0)
    }
}

impl From<Gradients> for GradientSum {
    /// Wraps the gradients of a mini-batch in one slice. If several ranks computed this slice, one rank's gradients are used.
    fn from(gradients: Gradients) -> Self {
        let mut sum = Sum::new(1);
        sum.push_leaf(0, Slice(gradients));
        Self { slices: 1, sum }
    }
}

/// Gradients of one slice or of several: a value of the tree on which slices are added.
pub(super) struct Slice(pub(super) Gradients);

impl Add for Slice {
    /// Adds the gradients; a parameter with a gradient on only one side keeps it.
    fn add(&mut self, right: Self) {
        for (name, gradient) in right.0.0 {
            self.0.add(&name, gradient);
        }
    }
}
