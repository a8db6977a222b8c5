//! The order in which prompts are visited: a seeded permutation per epoch, with a cursor that can be saved and restored.

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::util::rng::Stream;

/// Where the sampler stands: the next batch to be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SamplerState {
    pub epoch: u64,
    /// Batches of `epoch` already drawn.
    pub batch: u64,
}

/// Endless batches of row indices. The order within epoch `e` depends only on the seed and on `e`.
#[derive(Clone, Debug)]
pub struct Sampler {
    len: usize,
    batch_size: usize,
    shuffle: bool,
    seed: u64,
    drop_last: bool,
    state: SamplerState,
    /// The order of epoch `state.epoch`.
    order: Vec<usize>,
}

impl Sampler {
    /// `drop_last` leaves out an incomplete last batch, as verl does in training.
    pub fn new(len: usize, batch_size: usize, shuffle: bool, seed: u64, drop_last: bool) -> Result<Self> {
        if batch_size == 0 {
            bail!("the batch size is 0");
        }
        if len == 0 || (drop_last && len < batch_size) {
            bail!("{len} rows do not fill one batch of {batch_size}");
        }
        let state = SamplerState { epoch: 0, batch: 0 };
        let mut sampler = Self { len, batch_size, shuffle, seed, drop_last, state, order: Vec::new() };
        sampler.order = sampler.epoch_order(0);
        Ok(sampler)
    }

    /// Rows of a whole batch.
    pub fn batch_size(&self) -> usize {
        self.batch_size
    }

    pub fn batches_per_epoch(&self) -> u64 {
        let batches = if self.drop_last { self.len / self.batch_size } else { self.len.div_ceil(self.batch_size) };
        batches as u64
    }

    /// The next batch; after the last one of an epoch, the first one of the next.
    pub fn next_batch(&mut self) -> Vec<usize> {
        if self.state.batch == self.batches_per_epoch() {
            self.state = SamplerState { epoch: self.state.epoch + 1, batch: 0 };
            self.order = self.epoch_order(self.state.epoch);
        }
        let start = self.state.batch as usize * self.batch_size;
        self.state.batch += 1;
        self.order[start..self.len.min(start + self.batch_size)].to_vec()
    }

    pub fn state(&self) -> SamplerState {
        self.state
    }

    /// Continues from a saved state: the next batch is the one that would have followed it.
    pub fn restore(&mut self, state: SamplerState) -> Result<()> {
        if state.batch > self.batches_per_epoch() {
            bail!(
                "the saved data position is batch {} of its epoch, but an epoch now has {} batches: \
                 the data or the batch size has changed since the checkpoint",
                state.batch,
                self.batches_per_epoch()
            );
        }
        self.state = state;
        self.order = self.epoch_order(state.epoch);
        Ok(())
    }

    fn epoch_order(&self, epoch: u64) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.len).collect();
        if self.shuffle {
            Stream::new(self.seed, "epoch-order", &[epoch]).shuffle(&mut order);
        }
        order
    }
}
