//! The sparse teacher: at each token only its top-k tokens and their log-probabilities are known.
//!
//! The loss is a function D of the policy's log-probabilities log p_k of these tokens. With pull_k = −∂D/∂log p_k, its derivative by
//! the logits of the policy is S·p − Σ_k pull_k·onehot_k with S = Σ_k pull_k. For verl's `forward_kl_topk`, Σ_k q_k·(log q_k −
//! log p_k), pull_k is q_k; the mass outside the k tokens is ignored, so D may be negative. Others: [`SparseMeasure`].

use std::ops::Range;

use super::super::simd;
use super::sparse::{self, SparseMeasure};

/// The top-k tokens of a teacher at each of n tokens, the most probable first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopK {
    pub k: usize,
    /// [n, k]
    pub ids: Vec<u32>,
    /// [n, k]. −∞ masks an entry.
    pub log_probs: Vec<f32>,
}

impl TopK {
    /// Selects the entries of these tokens, one range after another.
    pub fn select(&self, tokens: impl IntoIterator<Item = Range<usize>>) -> Self {
        let mut part = Self { k: self.k, ..Self::default() };
        for range in tokens {
            let range = range.start * self.k..range.end * self.k;
            part.ids.extend_from_slice(&self.ids[range.clone()]);
            part.log_probs.extend_from_slice(&self.log_probs[range]);
        }
        part
    }

    /// Returns the entries of both, each token once. Where a position has fewer, an entry is masked.
    pub fn union(&self, other: &Self) -> Self {
        let all: Vec<Vec<u32>> = (0..self.tokens())
            .map(|token| {
                let mut ids = self.ids(token).to_vec();
                let more: Vec<u32> = other.ids(token).iter().copied().filter(|id| !ids.contains(id)).collect();
                ids.extend(more);
                ids
            })
            .collect();
        let k = all.iter().map(Vec::len).max().unwrap_or(self.k);
        let (mut ids, mut log_probs) = (Vec::new(), Vec::new());
        for own in all {
            let masked = k - own.len();
            log_probs.extend(own.iter().map(|_| 0.0).chain(std::iter::repeat_n(f32::NEG_INFINITY, masked)));
            ids.extend(own.iter().copied().chain(std::iter::repeat_n(own[0], masked)));
        }
        Self { k, ids, log_probs }
    }

    pub(super) fn ids(&self, token: usize) -> &[u32] {
        &self.ids[token * self.k..(token + 1) * self.k]
    }

    /// The number of tokens.
    pub(super) fn tokens(&self) -> usize {
        self.ids.len().checked_div(self.k).unwrap_or(0)
    }
}

/// Agreement of the policy with the top-k tokens of a teacher, per token (Rethinking On-Policy Distillation of Large Language
/// Models, arXiv:2604.13016; verl's `compute_forward_kl_topk`).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopKStats {
    /// The policy's probability of the teacher's k tokens; `teacher_mass` is the teacher's.
    pub student_mass: Vec<f32>,
    pub teacher_mass: Vec<f32>,
    /// The number of the teacher's tokens among the policy's top-k tokens.
    pub overlap: Vec<f32>,
    /// The mean of −q_k·(log q_k − log p_k) over the overlapping tokens; 0 without such tokens.
    pub overlap_advantage: Vec<f32>,
}

/// The results of [`compare`] for each token.
#[derive(Default)]
pub(super) struct Comparison {
    pub divergence: Vec<f32>,
    pub pull: Vec<f32>,
    pub stats: TopKStats,
}

/// Compares the teacher's entries with the policy's log-probabilities `student` [n, k] of the same tokens. `thresholds` [n] are
/// the policy's k-th largest log-probabilities.
pub(super) fn compare(teacher: &TopK, student: &[f32], thresholds: &[f32], measure: SparseMeasure) -> Comparison {
    let mut all = Comparison::default();
    let min = match measure {
        SparseMeasure::Sum { min: Some(min) } => f64::from(min),
        _ => f64::NEG_INFINITY,
    };
    for (token, &threshold) in thresholds.iter().enumerate() {
        let at = token * teacher.k..(token + 1) * teacher.k;
        let (mut divergence, mut student_mass, mut teacher_mass, mut overlap, mut advantage) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (&log_q, &log_p) in teacher.log_probs[at.clone()].iter().zip(&student[at]) {
            if log_q == f32::NEG_INFINITY {
                all.pull.push(0.0);
                continue;
            }
            let (exact_q, exact_p) = (f64::from(log_q), f64::from(log_p));
            student_mass += exact_p.exp();
            teacher_mass += exact_q.exp();
            // `max` is not used here since it would hide a NaN.
            let raised = |x: f64| if x < min { min } else { x };
            let (q, apart) = (raised(exact_q).exp(), raised(exact_q) - raised(exact_p));
            divergence += q * apart;
            all.pull.push(if exact_p < min { 0.0 } else { q as f32 });
            if log_p >= threshold {
                overlap += 1.0;
                advantage -= q * apart;
            }
        }
        if let SparseMeasure::Divergence { beta, add_tail } = measure {
            divergence = pulls_of_divergence(teacher, student, token, (beta, add_tail), &mut all.pull);
        }
        all.divergence.push(divergence as f32);
        all.stats.student_mass.push(student_mass as f32);
        all.stats.teacher_mass.push(teacher_mass as f32);
        all.stats.overlap.push(overlap as f32);
        all.stats.overlap_advantage.push((advantage / f64::max(overlap, 1.0)) as f32);
    }
    all
}

/// Replaces the pulls of a token, the last of `pull`, by those of a divergence, and returns its value.
fn pulls_of_divergence(teacher: &TopK, student: &[f32], token: usize, measure: (f64, bool), pull: &mut [f32]) -> f64 {
    let at = token * teacher.k..(token + 1) * teacher.k;
    let known = |i: &usize| teacher.log_probs[*i] != f32::NEG_INFINITY;
    let entries: Vec<(f64, f64)> =
        at.clone().filter(known).map(|i| (f64::from(teacher.log_probs[i]), f64::from(student[i]))).collect();
    let (divergence, slopes) = sparse::divergence(&entries, measure.0, measure.1);
    for (i, slope) in at.filter(known).zip(slopes) {
        pull[i] = -slope as f32;
    }
    divergence
}

/// The k largest logits of a token so far with their ids, the largest first; of equal logits the lower id.
#[derive(Clone, Debug)]
pub struct LargestLogits {
    k: usize,
    /// Logits and ids.
    pub entries: Vec<(f32, u32)>,
}

impl LargestLogits {
    /// Creates an empty list for `k` logits.
    pub fn new(k: usize) -> Self {
        Self { k, entries: Vec::with_capacity(k + 1) }
    }

    /// Adds the logits of the ids from `start` on. Ids must come in ascending order.
    pub fn add(&mut self, start: usize, x: &[f32]) {
        for (chunk, from) in x.chunks(64).zip((start..).step_by(64)) {
            let full = self.entries.len() == self.k;
            if full && simd::max_row(chunk) <= self.min() {
                continue;
            }
            for (&logit, id) in chunk.iter().zip(from as u32..) {
                if self.entries.len() == self.k && logit <= self.min() {
                    continue;
                }
                let place = self.entries.partition_point(|&(known, _)| known >= logit);
                self.entries.insert(place, (logit, id));
                self.entries.truncate(self.k);
            }
        }
    }

    /// The smallest of the k logits.
    pub(super) fn min(&self) -> f32 {
        self.entries.last().map_or(f32::NEG_INFINITY, |&(logit, _)| logit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_are_those_of_a_sort() {
        let logits: Vec<f32> = (0..1000u32).map(|i| (i * 7919 % 613) as f32).collect();
        let mut sorted: Vec<(f32, u32)> = logits.iter().copied().zip(0..).collect();
        sorted.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        for k in [1, 5, 64, 200] {
            let mut largest = LargestLogits::new(k);
            for (i, part) in logits.chunks(333).enumerate() {
                largest.add(i * 333, part);
            }
            assert_eq!(largest.entries, sorted[..k]);
        }
    }
}
