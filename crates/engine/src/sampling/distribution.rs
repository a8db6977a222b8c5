//! Probabilities of a row of logits, the token at a uniform number among them, and the filters min-p, top-k and top-p.

use burnish_model::ops::{exp_sub_sum, max_row};
use burnish_rollout::Sampling;

/// Number of tokens whose probabilities are summed together; a uniform number is first looked up among these sums.
pub(super) const BLOCK: usize = 1024;

/// Largest product of a logit and a scale for which two products are rounded before they are subtracted. The rounding changes the
/// logarithm of a probability by less than 4e-5. For larger products, the logits are subtracted first.
const ROUNDED: f32 = 1024.0;

/// Constants that turn a logit of a row into its log-probability under softmax(scale·x).
#[derive(Clone, Copy)]
pub(super) struct Normaliser {
    /// Largest logit.
    max: f32,
    scale: f32,
    /// log Σ e^(scale·(x − max)) over the kept tokens.
    pub log_sum: f32,
}

impl Normaliser {
    pub(super) fn log_prob(&self, logit: f32) -> f32 {
        let max = self.max * self.scale;
        let exponent = if max.abs() <= ROUNDED { logit * self.scale - max } else { (logit - self.max) * self.scale };
        exponent - self.log_sum
    }
}

/// Sums by [`BLOCK`] of a row of probabilities, which need not sum to 1.
#[derive(Default)]
pub(super) struct Distribution {
    sums: Vec<f64>,
}

impl Distribution {
    /// Replaces logits by e^(scale·(x − max)), with a maximum of 1.
    pub(super) fn fill(&mut self, logits: &mut [f32], scale: f32) -> Normaliser {
        let max = max_row(logits);
        let mut shift = max * scale;
        if shift.abs() > ROUNDED {
            logits.iter_mut().for_each(|logit| *logit -= max);
            shift = 0.0;
        }
        self.sums.clear();
        self.sums.extend(logits.chunks_mut(BLOCK).map(|block| f64::from(exp_sub_sum(block, scale, shift))));
        Normaliser { max, scale, log_sum: self.total().ln() as f32 }
    }

    pub(super) fn total(&self) -> f64 {
        self.sums.iter().sum()
    }

    /// Returns the first token at which the cumulative probability exceeds `u`.
    pub(super) fn inverse_cdf(&self, p: &[f32], u: f64) -> usize {
        let (block, left) = block_of(&self.sums, u);
        let first = block * BLOCK;
        let tokens = first..p.len().min(first + BLOCK);
        inverse_cdf(tokens, p, left)
    }
}

/// Returns the block in which the cumulative probability exceeds `u` of the sum of all blocks, and the remainder of `u` within
/// it.
pub(super) fn block_of(sums: &[f64], u: f64) -> (usize, f64) {
    let mut left = u * sums.iter().sum::<f64>();
    let mut block = 0;
    while block + 1 < sums.len() && left >= sums[block] {
        left -= sums[block];
        block += 1;
    }
    // Rounding may place the random number after the last token with a nonzero probability.
    while block > 0 && sums[block] == 0.0 {
        (block, left) = (block - 1, f64::INFINITY);
    }
    (block, left)
}

/// Returns the first of `tokens` at which the cumulative probability exceeds `left`, else the last with a nonzero probability.
pub(super) fn inverse_cdf(tokens: impl Iterator<Item = usize>, p: &[f32], mut left: f64) -> usize {
    let mut last = 0;
    for token in tokens.filter(|&token| p[token] > 0.0) {
        last = token;
        left -= f64::from(p[token]);
        if left < 0.0 {
            break;
        }
    }
    last
}

/// Returns the token, and the logarithm of the sum over the kept tokens.
pub(super) fn filtered(p: &[f32], sampling: &Sampling, total: f64, u: f64) -> (usize, f32) {
    let sum = |tokens: &[usize]| tokens.iter().map(|&i| f64::from(p[i])).sum::<f64>();
    let mut kept: Vec<usize> = (0..p.len()).collect();
    let mut kept_sum = total;
    if sampling.min_p > 0.0 {
        let min = sampling.min_p * max_row(p);
        kept.retain(|&i| p[i] >= min);
        kept_sum = sum(&kept);
    }
    let descending = |a: &usize, b: &usize| p[*b].total_cmp(&p[*a]).then(a.cmp(b));
    if sampling.top_k > 0 && sampling.top_k < kept.len() {
        kept.select_nth_unstable_by(sampling.top_k - 1, descending);
        kept.truncate(sampling.top_k);
        kept.sort_unstable();
        kept_sum = sum(&kept);
    }
    if sampling.top_p < 1.0 {
        // As in vLLM, top-p sees the renormalised probabilities that the other filters kept. Tokens below this bound cannot have
        // more than 1 − p together, so that only few need to be sorted.
        let min = (1.0 - f64::from(sampling.top_p)) * kept_sum / kept.len() as f64;
        kept.retain(|&i| f64::from(p[i]) >= min);
        kept.sort_unstable_by(descending);
        let mut cumulative = 0.0;
        let reached = kept.iter().position(|&i| {
            cumulative += f64::from(p[i]);
            cumulative >= f64::from(sampling.top_p) * kept_sum
        });
        kept.truncate(reached.map_or(kept.len(), |i| i + 1));
    }
    let total = sum(&kept);
    (inverse_cdf(kept.into_iter(), p, u * total), total.ln() as f32)
}
