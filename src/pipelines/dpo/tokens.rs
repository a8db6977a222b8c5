//! Metrics over the tokens of responses.

use serde::{Deserialize, Serialize};

use super::example::PreferenceExample;
use crate::pipelines::stage::StageExample;
use burnish_model::TokenStats;

/// Sums over the tokens of responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Tokens {
    entropy: f64,
    count: usize,
    /// Tokens of chosen responses, and the number of them that are the most probable token.
    chosen: usize,
    right: usize,
}

impl Tokens {
    /// Adds the responses of an example, whose sequences start at token `at` of the statistics. Returns the end of its tokens.
    pub(super) fn add(&mut self, example: &PreferenceExample, stats: &TokenStats, at: usize) -> usize {
        let (mut start, mut prompt) = (at, example.prompt_tokens());
        for (side, sequence) in example.sequences().iter().enumerate() {
            let end = start + sequence.response.len();
            let answer = start + std::mem::take(&mut prompt)..end;
            self.entropy += stats.entropy[answer.clone()].iter().map(|&h| f64::from(h)).sum::<f64>();
            self.count += answer.len();
            if side == 0 && matches!(example, PreferenceExample::Pair { .. }) {
                self.chosen += answer.len();
                self.right += stats.is_top1[answer].iter().filter(|right| **right).count();
            }
            start = end;
        }
        start
    }

    /// Adds the sums of both.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            entropy: self.entropy + other.entropy,
            count: self.count + other.count,
            chosen: self.chosen + other.chosen,
            right: self.right + other.right,
        }
    }

    /// Returns the means under TRL's names; the accuracy covers only chosen responses of pairs.
    pub(super) fn metrics(&self) -> impl Iterator<Item = (&'static str, f64)> + use<> {
        let accuracy = (self.chosen > 0).then(|| ("mean_token_accuracy", self.right as f64 / self.chosen as f64));
        [("entropy", self.entropy / self.count.max(1) as f64)].into_iter().chain(accuracy)
    }
}
