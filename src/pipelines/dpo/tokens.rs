//! What is known of the tokens of answers.

use super::example::PreferenceExample;
use crate::model::TokenStats;

/// Sums over the tokens of answers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tokens {
    entropy: f64,
    count: usize,
}

impl Tokens {
    /// Adds the answers of an example, whose sequences start at token `at` of the statistics; returns where they end.
    pub fn add(&mut self, example: &PreferenceExample, stats: &TokenStats, at: usize) -> usize {
        let (mut start, mut prompt) = (at, example.prompt_tokens());
        for sequence in example.sequences() {
            let end = start + sequence.response.len();
            let answer = start + std::mem::take(&mut prompt)..end;
            self.entropy += stats.entropy[answer.clone()].iter().map(|&h| f64::from(h)).sum::<f64>();
            self.count += answer.len();
            start = end;
        }
        start
    }

    /// Their means.
    pub fn metrics(&self) -> [(&'static str, f64); 1] {
        [("entropy", self.entropy / self.count.max(1) as f64)]
    }
}
