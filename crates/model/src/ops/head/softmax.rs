//! The sums for the softmax of a token's logits, over all tiles.

use super::super::simd::{self, LogSum};
use super::tiles::{FlexHead, Tiles};

/// Running sums over the logits x of a token, with z = x − max, and the target's logit.
#[derive(Clone, Debug, Default)]
pub(super) struct RunningSums {
    max: f32,
    /// Σ e^z, Σ e^z·z, Σ e^2z
    exp: f64,
    weighted: f64,
    squares: f64,
    pub target: f32,
}

impl RunningSums {
    fn add(&mut self, x: &[f32]) {
        let max = simd::max_row(x);
        let sums = simd::stats_row(x, max);
        if self.exp == 0.0 {
            self.max = max;
        }
        let (largest, of_sum, of_row) = (self.max.max(max), f64::from(self.max), f64::from(max));
        let (z, z_row) = (of_sum - f64::from(largest), of_row - f64::from(largest));
        let (a, b) = (z.exp(), z_row.exp());
        let (exp, weighted, squares) = (f64::from(sums.exp), f64::from(sums.weighted), f64::from(sums.squares));
        self.weighted = a * (self.weighted + z * self.exp) + b * (weighted + z_row * exp);
        self.squares = a * a * self.squares + b * b * squares;
        self.exp = a * self.exp + b * exp;
        self.max = largest;
    }

    /// Adds the logits of a tile whose first column is `start`, and takes the target's logit if it is in the tile.
    pub(crate) fn add_tile(&mut self, x: &[f32], start: usize, target: u32) {
        self.add(x);
        if let Some(&logit) = (target as usize).checked_sub(start).and_then(|at| x.get(at)) {
            self.target = logit;
        }
    }

    pub(super) fn log_sum(&self) -> LogSum {
        LogSum { max: self.max, rest: self.exp.ln() as f32 }
    }

    pub(super) fn entropy(&self) -> f32 {
        (self.exp.ln() - self.weighted / self.exp) as f32
    }

    /// True if no logit is larger than the target's.
    pub(super) fn is_top1(&self) -> bool {
        self.target >= self.max
    }

    pub(crate) fn sum_of_squares(&self) -> f32 {
        (self.squares / (self.exp * self.exp)) as f32
    }
}

/// Returns the sums of every token, and a collection per token that `look` fills. `look` gets the token, the first column of a
/// tile, the logits there and the token's collection.
pub(super) fn softmax<C: Clone + Send>(
    head: &FlexHead,
    targets: &[u32],
    empty: C,
    look: impl Fn(usize, usize, &[f32], &mut C) + Sync,
) -> (Vec<RunningSums>, Vec<C>) {
    let mut sums = vec![(RunningSums::default(), empty); targets.len()];
    let mut tiles = Tiles::new(head, None, targets.len());
    for (rows, columns) in tiles.all(targets.len()) {
        tiles.rows(&rows, &columns, &mut sums, |i, x, _, (sum, collection)| {
            sum.add_tile(x, columns.start, targets[i]);
            look(i, columns.start, x, collection);
        });
    }
    sums.into_iter().unzip()
}
