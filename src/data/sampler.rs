//! The order in which prompts are visited: a seeded permutation per epoch, with a cursor that can be saved and restored.

use std::collections::HashMap;

use anyhow::{Result, bail};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use serde::{Deserialize, Serialize};

/// Where the sampler stands: the next batch to be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SamplerState {
    pub epoch: u64,
    /// Batches of `epoch` already drawn.
    pub batch: u64,
}

/// Endless batches of row indices. The order within epoch `e` depends only on the seed and on `e`.
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
    /// `drop_last` leaves out an incomplete last batch, as verl does in training. verl's null seed (a different order in
    /// every run) does not exist here: without a seed, pass 0.
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
            shuffle(&mut order, &mut keyed_rng("epoch-order", self.seed, epoch));
        }
        order
    }
}

/// A ChaCha8 generator of its own for every (purpose, seed, counter): the three fill its key side by side, so that no two
/// share a stream. `purpose` has at most 16 bytes.
pub(crate) fn keyed_rng(purpose: &str, seed: u64, counter: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&counter.to_le_bytes());
    key[16..16 + purpose.len()].copy_from_slice(purpose.as_bytes());
    ChaCha8Rng::from_seed(key)
}

/// Uniform in 0..n, without bias: the few largest u64 that would favour small results are drawn again.
pub(crate) fn below(rng: &mut impl RngCore, n: u64) -> u64 {
    let limit = u64::MAX - (u64::MAX % n + 1) % n;
    loop {
        let draw = rng.next_u64();
        if draw <= limit {
            return draw % n;
        }
    }
}

/// Fisher–Yates.
fn shuffle(items: &mut [usize], rng: &mut impl RngCore) {
    for last in (1..items.len()).rev() {
        items.swap(last, below(rng, last as u64 + 1) as usize);
    }
}

/// `k` different numbers of 0..n in random order. Fisher–Yates on an array that is stored only where it was touched.
pub(crate) fn choose(n: u64, k: usize, rng: &mut impl RngCore) -> Vec<u64> {
    let mut moved: HashMap<u64, u64> = HashMap::new();
    let mut draw = |i: u64| {
        let j = i + below(rng, n - i);
        let chosen = moved.get(&j).copied().unwrap_or(j);
        let displaced = moved.get(&i).copied().unwrap_or(i);
        moved.insert(j, displaced);
        chosen
    };
    (0..(k as u64).min(n)).map(&mut draw).collect()
}
