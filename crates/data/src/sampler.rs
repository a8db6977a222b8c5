//! The order of prompts: a seeded permutation per epoch, with a position that can be saved and restored.

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use burnish_util::rng::Stream;

/// The position of the sampler, in rows, so it does not depend on the batch size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SamplerState {
    pub epoch: u64,
    /// Number of rows of `epoch` already drawn; `None` in checkpoints that count batches.
    #[serde(default)]
    drawn: Option<u64>,
    /// Number of rows of an epoch; `None` in checkpoints that count batches.
    #[serde(default)]
    rows: Option<u64>,
    /// Number of batches of `epoch` already drawn, in checkpoints without `drawn`.
    #[serde(default, skip_serializing)]
    batch: u64,
}

/// Endless batches of row indices. The order within epoch `e` depends only on the seed and on `e`.
#[derive(Clone, Debug)]
pub struct Sampler {
    len: usize,
    batch_size: usize,
    shuffle: bool,
    seed: u64,
    drop_last: bool,
    epoch: u64,
    /// Number of rows of `epoch` already drawn.
    drawn: usize,
    /// Order of the rows in `epoch`.
    order: Vec<usize>,
    /// Shares of the row sets, which follow one another; empty if an epoch draws every row once.
    shares: Vec<Share>,
}

/// The share of one set of rows in an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Number of rows in the set.
    pub rows: usize,
    /// Number of rows that an epoch draws from the set, which may be larger.
    pub drawn: usize,
}

impl SamplerState {
    /// Returns true if the state counts batches, as in older checkpoints. It then needs the batch size of the saving run.
    pub fn counts_batches(&self) -> bool {
        self.drawn.is_none()
    }
}

impl Sampler {
    /// Creates a sampler. `drop_last` skips an incomplete last batch, as verl does in training.
    pub fn new(len: usize, batch_size: usize, shuffle: bool, seed: u64, drop_last: bool) -> Result<Self> {
        if batch_size == 0 {
            bail!("the batch size is 0");
        }
        if len == 0 || (drop_last && len < batch_size) {
            bail!("{len} rows do not fill one batch of {batch_size}");
        }
        let mut sampler =
            Self { len, batch_size, shuffle, seed, drop_last, epoch: 0, drawn: 0, order: Vec::new(), shares: Vec::new() };
        sampler.order = sampler.epoch_order(0);
        Ok(sampler)
    }

    /// Returns a sampler that draws row sets by weight, with as many rows per epoch as before. `sets`: number of rows and weight
    /// of each set, one after another. The next epoch continues a set where the last one stopped; a small set starts over.
    ///
    /// # Errors
    /// The position of a set that is empty or gets no row, and the reason.
    pub fn with_shares(mut self, sets: &[(usize, f64)]) -> Result<Self, (usize, String)> {
        if let Some(empty) = sets.iter().position(|(rows, _)| *rows == 0) {
            return Err((empty, "it has no rows to draw".to_owned()));
        }
        let (rows, weights) = (self.len as f64, sets.iter().map(|(_, weight)| weight).sum::<f64>());
        let exact: Vec<f64> = sets.iter().map(|(_, weight)| rows * weight / weights).collect();
        let mut drawn: Vec<usize> = exact.iter().map(|share| *share as usize).collect();
        // Rows lost by rounding go to the largest remainders.
        let mut by_rest: Vec<usize> = (0..sets.len()).collect();
        by_rest.sort_by(|&a, &b| (exact[b] - exact[b].floor()).total_cmp(&(exact[a] - exact[a].floor())));
        let left = self.len.saturating_sub(drawn.iter().sum());
        by_rest.iter().cycle().take(left).for_each(|&set| drawn[set] += 1);
        if let Some(without) = drawn.iter().position(|drawn| *drawn == 0) {
            let all = self.len;
            return Err((
                without,
                format!("its weight is too small for one of the {all} rows of an epoch; write a larger weight"),
            ));
        }
        self.shares = sets.iter().zip(drawn).map(|(&(rows, _), drawn)| Share { rows, drawn }).collect();
        self.order = self.epoch_order(self.epoch);
        Ok(self)
    }

    /// Returns the shares of the sets; empty if an epoch draws every row once.
    pub fn shares(&self) -> &[Share] {
        &self.shares
    }

    /// Returns the number of rows of a full batch.
    pub fn batch_size(&self) -> usize {
        self.batch_size
    }

    pub fn batches_per_epoch(&self) -> u64 {
        let batches = if self.drop_last { self.len / self.batch_size } else { self.len.div_ceil(self.batch_size) };
        batches as u64
    }

    /// Returns the next batch. After the last batch of an epoch, starts the next epoch.
    pub fn next_batch(&mut self) -> Vec<usize> {
        self.next_batch_where(|_| true)
    }

    /// Like [`Self::next_batch`], without the rows that `is_kept` refuses. Empty if a whole epoch has too few rows.
    pub fn next_batch_where(&mut self, is_kept: impl Fn(usize) -> bool) -> Vec<usize> {
        let is_full = |rows: &[usize]| if self.drop_last { rows.len() == self.batch_size } else { !rows.is_empty() };
        let (rows, drawn) = self.rows_after(self.drawn, &is_kept);
        if is_full(&rows) {
            self.drawn = drawn;
            return rows;
        }
        let order = self.epoch_order(self.epoch + 1);
        (self.epoch, self.drawn, self.order) = (self.epoch + 1, 0, order);
        let (rows, drawn) = self.rows_after(0, &is_kept);
        self.drawn = drawn;
        if self.drop_last && rows.len() < self.batch_size { Vec::new() } else { rows }
    }

    /// Returns the next kept rows of this epoch, at most a batch, and the position after them.
    fn rows_after(&self, mut drawn: usize, is_kept: &impl Fn(usize) -> bool) -> (Vec<usize>, usize) {
        let mut rows = Vec::with_capacity(self.batch_size);
        while rows.len() < self.batch_size && drawn < self.len {
            rows.extend(Some(self.order[drawn]).filter(|&row| is_kept(row)));
            drawn += 1;
        }
        (rows, drawn)
    }

    pub fn state(&self) -> SamplerState {
        SamplerState { epoch: self.epoch, drawn: Some(self.drawn as u64), rows: Some(self.len as u64), batch: 0 }
    }

    /// Resumes from a saved state, at the row that would have come next.
    ///
    /// # Errors
    /// If the state belongs to other data.
    pub fn restore(&mut self, state: SamplerState) -> Result<()> {
        let rows = self.len as u64;
        if let Some(before) = state.rows.filter(|before| *before != rows) {
            bail!(
                "the checkpoint has a position in {before} rows of data, and now there are {rows}: the files or the filtered rows have \
                 changed, so the remaining rows are unknown; restore the files, or remove `extra` from checkpoint.load_contents, \
                 or start over with trainer.resume_mode=disable"
            );
        }
        let drawn = state.drawn.unwrap_or_else(|| state.batch.saturating_mul(self.batch_size as u64).min(rows));
        if drawn > rows {
            bail!("the checkpoint has the position {drawn} in its epoch, but an epoch has {rows} rows");
        }
        (self.epoch, self.drawn) = (state.epoch, drawn as usize);
        self.order = self.epoch_order(state.epoch);
        Ok(())
    }

    fn epoch_order(&self, epoch: u64) -> Vec<usize> {
        let mut order: Vec<usize> = if self.shares.is_empty() { (0..self.len).collect() } else { self.shared(epoch) };
        if self.shuffle {
            Stream::new(self.seed, "epoch-order", &[epoch]).shuffle(&mut order);
        }
        order
    }

    /// Returns the rows of an epoch by shares, each set spread evenly. Each set is repeated in passes, and each pass has its own
    /// order.
    fn shared(&self, epoch: u64) -> Vec<usize> {
        let mut order: Vec<(f64, usize, usize)> = Vec::with_capacity(self.len);
        let mut first = 0;
        for (set, Share { rows, drawn }) in self.shares.iter().enumerate() {
            let start = epoch * *drawn as u64;
            let mut pass: Option<(u64, Vec<usize>)> = None;
            for i in 0..*drawn {
                let at = start + i as u64;
                let number = at / *rows as u64;
                if pass.as_ref().is_none_or(|(known, _)| *known != number) {
                    let mut rows: Vec<usize> = (0..*rows).collect();
                    if self.shuffle {
                        Stream::new(self.seed, "set-order", &[set as u64, number]).shuffle(&mut rows);
                    }
                    pass = Some((number, rows));
                }
                let row = pass.as_ref().map_or(0, |(_, order)| order[(at % *rows as u64) as usize]);
                order.push(((i as f64 + 0.5) / *drawn as f64, set, first + row));
            }
            first += rows;
        }
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        order.into_iter().map(|(_, _, row)| row).collect()
    }
}
