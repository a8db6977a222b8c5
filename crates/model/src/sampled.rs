//! The response tokens with statistics: all of them, or in a conversation those that the model sampled. Tokens of tools and users
//! do not go through the head.

use std::borrow::Cow;

use super::ops::head::{TokenGrads, TokenStats, TopKStats};
use super::sequence::Sequence;

/// The indices of the sampled tokens among the response tokens of some sequences.
pub(super) struct Sampled {
    /// `None` if all response tokens were sampled.
    at: Option<Vec<usize>>,
    /// The number of response tokens.
    tokens: usize,
}

impl Sampled {
    pub(crate) fn new(sequences: &[Sequence]) -> Self {
        let tokens = sequences.iter().map(|s| s.response.len()).sum();
        let is_sampled = sequences.iter().flat_map(|s| (0..s.response.len()).map(|t| s.is_sampled(t)));
        let at: Vec<usize> = is_sampled.enumerate().filter(|(_, sampled)| *sampled).map(|(at, _)| at).collect();
        Self { at: Some(at).filter(|at| at.len() < tokens), tokens }
    }

    /// True if no token was sampled.
    pub(crate) fn is_empty(&self) -> bool {
        self.at.as_ref().map_or(self.tokens, Vec::len) == 0
    }

    /// Expands the statistics of the sampled tokens to all response tokens, with 0 for the others.
    pub(crate) fn spread<'a>(&self, stats: &'a TokenStats) -> Cow<'a, TokenStats> {
        let Some(at) = &self.at else { return Cow::Borrowed(stats) };
        let column = |column: &[f32]| self.spread_column(at, column, 0.0);
        let TopKStats { student_mass, teacher_mass, overlap, overlap_advantage } = &stats.top_k;
        Cow::Owned(TokenStats {
            log_prob: column(&stats.log_prob),
            is_top1: self.spread_column(at, &stats.is_top1, false),
            entropy: column(&stats.entropy),
            sum_pi_squared: column(&stats.sum_pi_squared),
            full_kl: column(&stats.full_kl),
            top_k: TopKStats {
                student_mass: column(student_mass),
                teacher_mass: column(teacher_mass),
                overlap: column(overlap),
                overlap_advantage: column(overlap_advantage),
            },
        })
    }

    /// Expands a column. An empty column stays empty, unless no token was sampled at all.
    fn spread_column<T: Copy>(&self, at: &[usize], column: &[T], other: T) -> Vec<T> {
        if column.is_empty() && !at.is_empty() {
            return Vec::new();
        }
        let mut all = vec![other; self.tokens];
        at.iter().zip(column).for_each(|(&at, &value)| all[at] = value);
        all
    }

    /// Selects the gradients of the sampled tokens from the gradients of all response tokens.
    pub(crate) fn select(&self, grads: TokenGrads) -> TokenGrads {
        let Some(at) = &self.at else { return grads };
        let column = |column: Vec<f32>| if column.is_empty() { column } else { at.iter().map(|&at| column[at]).collect() };
        TokenGrads { log_prob: column(grads.log_prob), entropy: column(grads.entropy), full_kl: column(grads.full_kl) }
    }
}
